package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// added is an added token, as its file describes it.
type added struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// matcher finds added tokens in a text: at each place the longest. It is a trie of
// bytes whose edges are one map, from node and byte to node.
type matcher struct {
	first [256]bool
	edges map[uint32]uint32
	ends  map[uint32]added
}

// maxNodes keeps a node and a byte within the 32 bits of an edge's key.
const maxNodes = 1 << 24

// add makes the matcher know a token; false: there are too many.
func (m *matcher) add(token added) bool {
	if token.Content == "" {
		return true
	}
	if m.edges == nil {
		m.edges, m.ends = map[uint32]uint32{}, map[uint32]added{}
	}
	m.first[token.Content[0]] = true
	var node uint32
	for i := range len(token.Content) {
		key := node<<8 | uint32(token.Content[i])
		next, ok := m.edges[key]
		if !ok {
			next = uint32(len(m.edges) + 1)
			if next >= maxNodes {
				return false
			}
			m.edges[key] = next
		}
		node = next
	}
	m.ends[node] = token
	return true
}

// longest is the longest token that text[at:] begins with.
func (m *matcher) longest(text string, at int) (found added, ok bool) {
	var node uint32
	for i := at; i < len(text); i++ {
		next, more := m.edges[node<<8|uint32(text[i])]
		if !more {
			break
		}
		node = next
		if token, end := m.ends[node]; end {
			found, ok = token, true
		}
	}
	return found, ok
}

// cut calls token for each added token of the text and plain for what is between
// them, in order.
func (m *matcher) cut(text string, plain func(string), token func(uint32)) {
	done := 0 // text[:done] has been given out
	for at := 0; at < len(text); at++ {
		if !m.first[text[at]] {
			continue
		}
		found, ok := m.longest(text, at)
		if !ok {
			continue
		}
		start, end := at, at+len(found.Content)
		at = end - 1
		if found.SingleWord && (endsInWord(text[:start]) || beginsWithWord(text[end:])) {
			continue
		}
		if found.LStrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], unicode.IsSpace)))
		}
		if found.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		}
		if done < start {
			plain(text[done:start])
		}
		token(found.ID)
		done = end
	}
	if done < len(text) {
		plain(text[done:])
	}
}

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && wordCharacter(r)
}

func beginsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && wordCharacter(r)
}

// wordCharacter is \w.
func wordCharacter(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc,
		unicode.Other_Alphabetic, unicode.Join_Control)
}
