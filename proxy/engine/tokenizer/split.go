package tokenizer

import "unicode/utf8"

// step is one pre-tokenizer: it cuts a piece into parts, in order.
type step func(piece string, part func(string)) error

// rule is a split pattern written by hand: where the match that begins at byte i
// ends, i if none does.
type rule func(r *reader, i int) int

// step cuts a piece into what the rule matches and what is between its matches.
func (match rule) step(piece string, part func(string)) error {
	r := read(piece)
	gap := 0
	for i := 0; i < len(piece); {
		end := match(&r, i)
		if end == i {
			_, i = r.at(i)
			continue
		}
		if gap < i {
			part(piece[gap:i])
		}
		part(piece[i:end])
		i, gap = end, end
	}
	if gap < len(piece) {
		part(piece[gap:])
	}
	return nil
}

// The split patterns of known models, as their files spell them.
const (
	tail = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	head = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`

	patternQwen     = head + `\p{N}` + tail
	patternLlama    = head + `\p{N}{1,3}` + tail
	patternO200k    = o200kUpper + `*` + o200kLower + `+` + o200kEnd + `|` + o200kUpper + `+` + o200kLower + `*` + o200kEnd + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kUpper      = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	o200kLower      = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	o200kEnd        = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	patternNumbers3 = `\p{N}{1,3}`
	patternHan      = "[一-龥\u3040-ゟ゠-ヿ]+"
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	patternGPT2     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
)

var rules = map[string]rule{
	patternQwen:     gpt4(1),
	patternLlama:    gpt4(3),
	patternO200k:    o200k,
	patternNumbers3: func(r *reader, i int) int { return r.digits(i, 3) },
	patternHan:      func(r *reader, i int) int { return r.run(i, han) },
	patternDeepSeek: deepSeek,
	patternGPT2:     gpt2,
}

// gpt4 is the pattern of GPT-4 (Llama 3) and with single digits that of Qwen.
func gpt4(maxDigits int) rule {
	return func(r *reader, i int) int {
		if end := r.contraction(i, true); end > i {
			return end
		}
		c, next := r.at(i)
		switch {
		case c&letter != 0:
			return r.run(next, letter)
		case c&number != 0:
			return r.digits(i, maxDigits)
		}
		if c&newline == 0 {
			if end := r.run(next, letter); end > next {
				return end
			}
		}
		if end := r.symbols(i, space|letter|number); end > i {
			return r.run(end, newline)
		}
		return r.blank(i)
	}
}

// gpt2 is what a ByteLevel step splits by.
func gpt2(r *reader, i int) int {
	if end := r.contraction(i, false); end > i {
		return end
	}
	j := r.afterSpace(i)
	for _, in := range []class{letter, number} {
		if end := r.run(j, in); end > j {
			return end
		}
	}
	if end := r.symbols(i, space|letter|number); end > i {
		return end
	}
	return r.plainBlank(i)
}

// deepSeek is the third pattern of DeepSeek V3.
func deepSeek(r *reader, i int) int {
	c, next := r.at(i)
	if c&punct != 0 && r.s[i] < utf8.RuneSelf {
		if end := r.asciiLetters(next); end > next {
			return end
		}
	}
	if c&(letter|mark) != 0 {
		return r.run(next, letter|mark)
	}
	if c&(newline|punct) == 0 {
		if end := r.run(next, letter|mark); end > next {
			return end
		}
	}
	j := r.afterSpace(i)
	if end := r.run(j, punct); end > j {
		return r.run(end, newline)
	}
	return r.blank(i)
}

// o200k is the pattern of gpt-oss: words end where their case says so.
func o200k(r *reader, i int) int {
	c, next := r.at(i)
	for _, matches := range []func(int) int{r.capitalized, r.capitals} {
		if c&(newline|letter|number) == 0 {
			if end := matches(next); end > next {
				return r.contraction(end, true)
			}
		}
		if end := matches(i); end > i {
			return r.contraction(end, true)
		}
	}
	if c&number != 0 {
		return r.digits(i, 3)
	}
	end := r.symbols(i, space|letter|number)
	if end == i {
		return r.blank(i)
	}
	for end < len(r.s) && (r.s[end] == '\r' || r.s[end] == '\n' || r.s[end] == '/') {
		end++
	}
	return end
}
