package prompt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kvca/state/kvindex"
)

// What is read of an engine's answer at most, in bytes. The parser holds a whole
// string at a time, wanted or not, so this bounds the memory of a call too.
const (
	maxAnswer      = 64 << 20
	bytesPerAnswer = 1 << 20 // whatever the prompt: names, sampling parameters
	bytesPerID     = 16      // digits, a comma, space, and the objects of some dialects
	bytesPerMedia  = 8       // of a renderer for each byte of a body with media: their tensors
)

// answerBytes is how much of an answer about a prompt of so many token ids is read;
// media is the length of a body that has any, else 0.
func answerBytes(ids, media int) int64 {
	return min(maxAnswer, bytesPerAnswer+bytesPerID*int64(ids)+bytesPerMedia*int64(media))
}

// found is what an engine said of a prompt.
type found struct {
	tokens []uint32
	media  []kvindex.Media
	salt   string
	// expanded is whether the tokens of media are known to be counted in.
	expanded bool
	// several is whether these are the first of more than one prompt.
	several bool
}

// answerReader reads an answer as it arrives. No tree is built: of all that a
// renderer tells, only what is wanted is kept. What is skipped is held for a moment,
// a string in whole (a picture's tensors): who makes the reader bounds it.
type answerReader struct {
	walker
	r     io.Reader // what d reads
	limit int       // token ids
	taken bool      // ids have been read past d
}

func newAnswerReader(r io.Reader, limit int) *answerReader {
	return &answerReader{walker: walker{jsontext.NewDecoder(r, lenient...)}, r: r, limit: limit}
}

// ids reads an array of token ids by itself, from where the decoder stands, and
// lets the decoder go on behind it. An answer has one.
func (a *answerReader) ids() ([]uint32, error) {
	if a.taken {
		return nil, errors.New("answer: token ids come twice")
	}
	a.taken = true
	if a.null() {
		return nil, nil
	}
	// The colon is not the decoder's before the value is, but it has been peeked at.
	unread, colon := bytes.CutPrefix(bytes.TrimLeft(a.d.UnreadBuffer(), " \n\t\r"), []byte(":"))
	if !colon {
		return nil, errIDs
	}
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(unread)), a.r), 32<<10)
	ids, err := scanIDs(r, a.limit)
	if err != nil {
		return nil, err
	}
	return ids, a.resume(r)
}

// resume has the decoder read from r as if it had just read a value in the place
// where it is, by letting it read a text that leads there.
func (a *answerReader) resume(r io.Reader) error {
	var way strings.Builder
	tokens := 1
	for level := range a.d.StackDepth() {
		tokens++
		if kind, _ := a.d.StackIndex(level + 1); kind == '[' {
			way.WriteByte('[')
			continue
		}
		way.WriteString(`{"":`)
		tokens++
	}
	way.WriteByte('0')
	a.r = io.MultiReader(strings.NewReader(way.String()), r)
	a.d.Reset(a.r, lenient...)
	for range tokens {
		if _, err := a.d.ReadToken(); err != nil {
			return err
		}
	}
	return nil
}

func (a *answerReader) text() (string, error) {
	raw, err := a.d.ReadValue()
	return unquote(raw), err
}

// whole is a whole number that an int32 can hold.
func (a *answerReader) whole() (int, error) {
	raw, err := a.d.ReadValue()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(raw), 10, 31)
	if err != nil {
		return 0, fmt.Errorf("answer: want a whole number from 0 to 2147483647, got %.20s", raw)
	}
	return int(n), nil
}

// rendered reads the answer of a renderer.
func (a *answerReader) rendered() (found, error) {
	var f found
	err := a.members(func(name string) (err error) {
		switch name {
		case "token_ids":
			f.tokens, err = a.ids()
		case "cache_salt":
			f.salt, err = a.text()
		case "features":
			f.media, err = a.features()
			f.expanded = len(f.media) > 0
		default:
			err = a.d.SkipValue()
		}
		return err
	})
	return f, err
}

// renderedFirst reads the first of a list of such answers.
func (a *answerReader) renderedFirst() (f found, err error) {
	err = a.elements(func(i int) (err error) {
		if i > 0 {
			f.several = true
			return a.d.SkipValue()
		}
		f, err = a.rendered()
		return err
	})
	return f, err
}

// maxMedia bounds the media items of a prompt.
const maxMedia = 1 << 16

// features reads the media of a rendered prompt: their hashes and places, both by
// modality, which have to pair up.
func (a *answerReader) features() ([]kvindex.Media, error) {
	if a.null() {
		return nil, nil
	}
	hashes, places := map[string][]string{}, map[string][]kvindex.Media{}
	err := a.members(func(name string) error {
		switch {
		case name == "mm_hashes" && !a.null():
			return byModality(a, hashes, a.text)
		case name == "mm_placeholders" && !a.null():
			return byModality(a, places, a.place)
		case name == "mm_hashes" || name == "mm_placeholders":
			return nil
		}
		return a.d.SkipValue()
	})
	if err != nil {
		return nil, err
	}
	return pair(hashes, places)
}

func byModality[T any](a *answerReader, into map[string][]T, read func() (T, error)) error {
	total := 0
	return a.members(func(modality string) error {
		if a.null() {
			return nil
		}
		return a.elements(func(int) error {
			v, err := read()
			if total++; total > maxMedia {
				return fmt.Errorf("answer: more than %d media items", maxMedia)
			}
			into[modality] = append(into[modality], v)
			return err
		})
	})
}

func (a *answerReader) place() (m kvindex.Media, err error) {
	err = a.members(func(name string) (err error) {
		switch name {
		case "offset":
			m.Offset, err = a.whole()
		case "length":
			m.Length, err = a.whole()
		default:
			err = a.d.SkipValue()
		}
		return err
	})
	return m, err
}

func pair(hashes map[string][]string, places map[string][]kvindex.Media) ([]kvindex.Media, error) {
	var all []kvindex.Media
	for modality, at := range places {
		ids := hashes[modality]
		if len(ids) != len(at) {
			return nil, fmt.Errorf("answer: %d places of %d media items", len(at), len(ids))
		}
		for i, m := range at {
			m.ID = ids[i]
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b kvindex.Media) int { return a.Offset - b.Offset })
	return all, nil
}

// listed reads the answer of a tokenizer: ids under the name tokens.
func (a *answerReader) listed() (found, error) {
	var f found
	err := a.members(func(name string) (err error) {
		if name != "tokens" {
			return a.d.SkipValue()
		}
		f.tokens, err = a.ids()
		return err
	})
	return f, err
}
