package tokenizer

// What the split patterns are made of. Each is where its match that begins at byte i
// ends, i if none does.

// contractions are what may follow an apostrophe.
var contractions = []string{"s", "t", "re", "ve", "m", "ll", "d"}

// contraction is (?i:'s|'t|'re|'ve|'m|'ll|'d). The long s is an s to whoever ignores
// case.
func (r *reader) contraction(i int, ignoreCase bool) int {
	if i >= len(r.s) || r.s[i] != '\'' {
		return i
	}
	rest := r.s[i+1:]
	if ignoreCase && len(rest) >= len("ſ") && rest[:len("ſ")] == "ſ" {
		return i + 1 + len("ſ")
	}
	for _, word := range contractions {
		if len(rest) >= len(word) && equal(rest[:len(word)], word, ignoreCase) {
			return i + 1 + len(word)
		}
	}
	return i
}

// equal compares with a word in lower case.
func equal(s, word string, ignoreCase bool) bool {
	for i := range len(word) {
		b := s[i]
		if ignoreCase && 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != word[i] {
			return false
		}
	}
	return true
}

// digits is \p{N}{1,most}.
func (r *reader) digits(i, most int) int {
	for range most {
		c, next := r.at(i)
		if c&number == 0 {
			break
		}
		i = next
	}
	return i
}

// afterSpace is behind " ?".
func (r *reader) afterSpace(i int) int {
	if i < len(r.s) && r.s[i] == ' ' {
		return i + 1
	}
	return i
}

// symbols is " ?" and one or more characters that have none of these classes, one of
// which is space.
func (r *reader) symbols(i int, none class) int {
	j := r.afterSpace(i)
	if end := r.runNot(j, none); end > j {
		return end
	}
	return i
}

func (r *reader) asciiLetters(i int) int {
	for i < len(r.s) && (r.s[i]|0x20 >= 'a' && r.s[i]|0x20 <= 'z') {
		i++
	}
	return i
}

// blank is \s*[\r\n]+|\s+(?!\S)|\s+.
func (r *reader) blank(i int) int {
	end := i
	for j := i; ; {
		c, next := r.at(j)
		if c&space == 0 {
			break
		}
		if c&newline != 0 {
			end = next
		}
		j = next
	}
	if end > i {
		return end
	}
	return r.plainBlank(i)
}

// plainBlank is \s+(?!\S)|\s+: the last space before a word belongs to the word.
func (r *reader) plainBlank(i int) int {
	last, end := i, i
	for {
		c, next := r.at(end)
		if c&space == 0 {
			break
		}
		last, end = end, next
	}
	if end < len(r.s) && last > i {
		return last
	}
	return end
}

// capitalized is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+: the
// first run takes what it can, and gives back up to the last character that the
// second can begin with.
func (r *reader) capitalized(i int) int {
	split := i // behind the last character of the first run that both can take
	j := i
	for {
		c, next := r.at(j)
		if c&(upper|other|mark) == 0 {
			break
		}
		j = next
		if c&(other|mark) != 0 {
			split = j
		}
	}
	if end := r.run(j, lower|other|mark); end > j {
		return end
	}
	return split
}

// capitals is [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*.
func (r *reader) capitals(i int) int {
	if end := r.run(i, upper|other|mark); end > i {
		return r.run(end, lower|other|mark)
	}
	return i
}
