package tokenizer

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// file is a tokenizer.json, as far as encoding needs it.
type file struct {
	AddedTokens   []added        `json:"added_tokens"`
	Normalizer    jsontext.Value `json:"normalizer"`
	PreTokenizer  jsontext.Value `json:"pre_tokenizer"`
	PostProcessor jsontext.Value `json:"post_processor"`
	Model         model          `json:"model"`
}

type model struct {
	Type         string         `json:"type"`
	Dropout      *float64       `json:"dropout"`
	Prefix       *string        `json:"continuing_subword_prefix"`
	Suffix       *string        `json:"end_of_word_suffix"`
	ByteFallback bool           `json:"byte_fallback"`
	IgnoreMerges bool           `json:"ignore_merges"`
	Vocab        jsontext.Value `json:"vocab"`
	Merges       []merge        `json:"merges"`
}

// merge is a pair of tokens by name: an array of two, or in older files both in one
// string with a space between.
type merge [2]string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *merge) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() == '[' {
		return json.UnmarshalDecode(d, (*[2]string)(m))
	}
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	left, right, ok := strings.Cut(token.String(), " ")
	if token.Kind() != '"' || !ok || strings.Contains(right, " ") {
		return fmt.Errorf("merge %q: want two tokens with a space between", token.String())
	}
	*m = merge{left, right}
	return nil
}

// supported says what keeps the model from being encoded exactly.
func (m *model) supported() error {
	switch {
	case m.Type != "BPE" && !(m.Type == "" && len(m.Merges) > 0):
		return fmt.Errorf("model type %q is not supported: want BPE over bytes", m.Type)
	case m.ByteFallback:
		return fmt.Errorf("a sentencepiece model (BPE with byte_fallback) is not supported: want BPE over bytes")
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("dropout %v is not supported: its tokens are random", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "", m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("subword prefixes and suffixes are not supported")
	}
	return nil
}

// Read takes a tokenizer.json apart.
func Read(data []byte) (*Tokenizer, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("larger than %d MiB", MaxFile>>20)
	}
	var f file
	if err := json.Unmarshal(data, &f, jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	if err := f.Model.supported(); err != nil {
		return nil, err
	}
	t := &Tokenizer{pieces: newPieces(maxRemembered)}
	if err := t.readModel(&f.Model); err != nil {
		return nil, err
	}
	var err error
	if t.normalize, err = normalizer(f.Normalizer); err != nil {
		return nil, err
	}
	if err := t.readAdded(f.AddedTokens); err != nil {
		return nil, err
	}
	if err := t.readSteps(f.PreTokenizer); err != nil {
		return nil, err
	}
	if err := t.readFrame(f.PostProcessor); err != nil {
		return nil, err
	}
	return t, nil
}

// maxToken bounds ids, so that a false file can't ask for tables of any size.
const maxToken = 1 << 30

// readModel builds the merges.
func (t *Tokenizer) readModel(m *model) error {
	vocab := make(map[string]uint32, len(m.Merges)+512)
	if len(m.Vocab) == 0 {
		return fmt.Errorf("model without vocab")
	}
	if err := json.Unmarshal(m.Vocab, &vocab, jsontext.AllowInvalidUTF8(true)); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	for name, id := range vocab {
		if id >= maxToken {
			return fmt.Errorf("token %q has the id %d: too large", name, id)
		}
		t.size = max(t.size, int(id)+1)
	}
	b, err := newBPE(vocab, m.Merges)
	if err != nil {
		return err
	}
	if m.IgnoreMerges {
		b.words = make(map[string]uint32, len(vocab))
		for name, id := range vocab {
			if word, ok := bytesOf(name); ok {
				b.words[word] = id
			}
		}
	}
	t.bpe = b
	return nil
}

// readAdded sorts the added tokens by when they are looked for.
func (t *Tokenizer) readAdded(tokens []added) error {
	for _, a := range tokens {
		if a.ID >= maxToken {
			return fmt.Errorf("added token %q has the id %d: too large", a.Content, a.ID)
		}
		t.size = max(t.size, int(a.ID)+1)
		m := &t.raw
		if a.Normalized {
			a.Content = t.normalize(a.Content)
			m = &t.normalized
		}
		if !m.add(a) {
			return fmt.Errorf("added tokens of more than %d bytes together", maxNodes)
		}
	}
	return nil
}

// absent is whether a part of the file is left out.
func absent(v jsontext.Value) bool { return len(v) == 0 || bytes.Equal(v, []byte("null")) }
