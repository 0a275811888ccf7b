package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is what split patterns ask of a character, a bit for each question.
type class uint16

const (
	upper   class = 1 << iota // \p{Lu}, \p{Lt}
	lower                     // \p{Ll}
	other                     // \p{Lm}, \p{Lo}
	mark                      // \p{M}
	number                    // \p{N}
	space                     // \s
	newline                   // \r, \n
	punct                     // \p{P}, \p{S}
	han                       // DeepSeek's range of CJK characters

	letter = upper | lower | other
)

// classes holds the class of each character in two stages: the block of 256 that it
// is in, then its place there. Equal blocks are not shared: it takes 8.7 MB at most,
// and less since blocks without any class are left out.
var classes = sync.OnceValue(func() *[0x1100]*[256]class {
	t := new([0x1100]*[256]class)
	set := func(table *unicode.RangeTable, c class) {
		for _, r := range table.R16 {
			for x := rune(r.Lo); x <= rune(r.Hi); x += rune(r.Stride) {
				setClass(t, x, c)
			}
		}
		for _, r := range table.R32 {
			for x := rune(r.Lo); x <= rune(r.Hi); x += rune(r.Stride) {
				setClass(t, x, c)
			}
		}
	}
	for _, e := range []struct {
		table *unicode.RangeTable
		c     class
	}{
		{unicode.Lu, upper},
		{unicode.Lt, upper},
		{unicode.Ll, lower},
		{unicode.Lm, other},
		{unicode.Lo, other},
		{unicode.M, mark},
		{unicode.N, number},
		{unicode.White_Space, space},
		{unicode.P, punct},
		{unicode.S, punct},
	} {
		set(e.table, e.c)
	}
	for _, n := range newCharacters {
		for x := n.first; x <= n.last; x++ {
			setClass(t, x, n.class)
		}
	}
	for _, r := range []rune{'\r', '\n'} {
		setClass(t, r, newline)
	}
	for _, span := range [][2]rune{{0x4e00, 0x9fa5}, {0x3040, 0x30ff}} {
		for x := span[0]; x <= span[1]; x++ {
			setClass(t, x, han)
		}
	}
	return t
})

func setClass(t *[0x1100]*[256]class, r rune, c class) {
	block := &t[r>>8]
	if *block == nil {
		*block = new([256]class)
	}
	(*block)[r&0xff] |= c
}

// reader walks over the characters of a string.
type reader struct {
	s     string
	table *[0x1100]*[256]class
}

func read(s string) reader { return reader{s, classes()} }

// at is the class of the character at byte i, and where the next one is. At the end
// of the string it has no class and no length.
func (r *reader) at(i int) (class, int) {
	if i >= len(r.s) {
		return 0, i
	}
	if b := r.s[i]; b < utf8.RuneSelf {
		return r.table[0][b], i + 1
	}
	c, n := utf8.DecodeRuneInString(r.s[i:])
	if block := r.table[c>>8]; block != nil {
		return block[c&0xff], i + n
	}
	return 0, i + n
}

// run is where the characters of any of these classes that begin at i end.
func (r *reader) run(i int, in class) int {
	for i < len(r.s) {
		c, next := r.at(i)
		if c&in == 0 {
			return i
		}
		i = next
	}
	return i
}

// runNot is run for the characters that have none of these classes.
func (r *reader) runNot(i int, in class) int {
	for i < len(r.s) {
		c, next := r.at(i)
		if c&in != 0 {
			return i
		}
		i = next
	}
	return i
}
