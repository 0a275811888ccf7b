package tokenizer

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// MaxFile is how large a tokenizer.json may be, in bytes.
const MaxFile = 64 << 20

// Tokenizer is one model's tokenizer.
type Tokenizer struct {
	raw        matcher // added tokens looked for in the text as it came
	normalized matcher // and those looked for after normalization
	normalize  func(string) string
	steps      []step
	bpe        *bpe
	pieces     *pieces
	before     []uint32 // what a template puts around a text that stands alone
	after      []uint32
	size       int
}

// Load reads a tokenizer.json.
func Load(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read tokenizer: %w", err)
	}
	t, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Vocabulary is one more than the highest token id.
func (t *Tokenizer) Vocabulary() int { return t.size }

// Append appends the tokens of text to dst. Special tokens that are spelled out in
// the text are recognised; addSpecial also adds those that the model wants around a
// text, such as Llama's <|begin_of_text|>. The one error is a split pattern that took
// too long on this text; dst comes back as it was then.
func (t *Tokenizer) Append(dst []uint32, text string, addSpecial bool) ([]uint32, error) {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	start := len(dst)
	if addSpecial {
		dst = append(dst, t.before...)
	}
	run := encoding{t: t, dst: dst}
	t.raw.cut(text, run.plain, run.token)
	if run.err != nil {
		return dst[:start], run.err
	}
	if addSpecial {
		run.dst = append(run.dst, t.after...)
	}
	return run.dst, nil
}

// encoding is one call of Append.
type encoding struct {
	t   *Tokenizer
	dst []uint32
	err error
}

func (e *encoding) token(id uint32) { e.dst = append(e.dst, id) }

// plain encodes what is between added tokens of the text as it came.
func (e *encoding) plain(text string) {
	if ids, ok := e.t.pieces.find(text); ok {
		e.dst = append(e.dst, ids...)
		return
	}
	start := len(e.dst)
	e.t.normalized.cut(e.t.normalize(text), e.words, e.token)
	if e.err == nil {
		e.t.pieces.add(text, e.dst[start:])
	}
}

// words encodes normalized text without added tokens.
func (e *encoding) words(text string) { e.split(text, 0) }

// split sends a piece through the steps from n on, and what comes out of the last
// one to the merges.
func (e *encoding) split(piece string, n int) {
	if e.err != nil || piece == "" {
		return
	}
	if n == len(e.t.steps) {
		e.dst = e.t.bpe.append(e.dst, piece)
		return
	}
	err := e.t.steps[n](piece, func(part string) { e.split(part, n+1) })
	if e.err == nil {
		e.err = err
	}
}

// Special are the tokens that addSpecial adds.
func (t *Tokenizer) Special() []uint32 { return append(append([]uint32(nil), t.before...), t.after...) }
