package tokenizer

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// part is a normalizer, a pre-tokenizer or a post-processor: the members of all of
// those that are read here.
type part struct {
	Type          string           `json:"type"`
	Normalizers   []jsontext.Value `json:"normalizers"`
	PreTokenizers []jsontext.Value `json:"pretokenizers"`
	Processors    []jsontext.Value `json:"processors"`

	Pattern struct {
		Regex  *string `json:"Regex"`
		String *string `json:"String"`
	} `json:"pattern"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`

	AddPrefixSpace bool  `json:"add_prefix_space"`
	UseRegex       *bool `json:"use_regex"`
	Individual     bool  `json:"individual_digits"`

	Single  []framePart `json:"single"`
	Special map[string]struct {
		IDs []uint32 `json:"ids"`
	} `json:"special_tokens"`
}

type framePart struct {
	SpecialToken *struct {
		ID string `json:"id"`
	} `json:"SpecialToken"`
	Sequence *struct{} `json:"Sequence"`
}

// maxNesting bounds sequences within sequences.
const maxNesting = 8

// flatten gives the parts that a part consists of, sequences taken apart.
func flatten(what string, v jsontext.Value, depth int) ([]part, error) {
	if absent(v) {
		return nil, nil
	}
	var p part
	if err := json.Unmarshal(v, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if p.Type != "Sequence" {
		return []part{p}, nil
	}
	if depth == maxNesting {
		return nil, fmt.Errorf("%s: sequences nested more than %d deep", what, maxNesting)
	}
	var all []part
	for _, list := range [][]jsontext.Value{p.Normalizers, p.PreTokenizers, p.Processors} {
		for _, inner := range list {
			parts, err := flatten(what, inner, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		}
	}
	return all, nil
}

// normalizer is what the file does to text before it is split.
func normalizer(v jsontext.Value) (func(string) string, error) {
	parts, err := flatten("normalizer", v, 0)
	if err != nil {
		return nil, err
	}
	all := func(s string) string { return s }
	forms := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}
	for _, p := range parts {
		form, ok := forms[p.Type]
		if !ok {
			return nil, fmt.Errorf("normalizer %q is not supported", p.Type)
		}
		before := all
		all = func(s string) string { return normalForm(form, before(s)) }
	}
	return all, nil
}

// readSteps builds the pre-tokenizers. One of them has to be ByteLevel, which says
// that the vocabulary is one of bytes.
func (t *Tokenizer) readSteps(v jsontext.Value) error {
	parts, err := flatten("pre_tokenizer", v, 0)
	if err != nil {
		return err
	}
	byteLevel := false
	for i, p := range parts {
		if byteLevel {
			return fmt.Errorf("pre_tokenizer %q after ByteLevel is not supported", p.Type)
		}
		byteLevel = p.Type == "ByteLevel"
		steps, err := p.steps()
		if err != nil {
			return fmt.Errorf("pre_tokenizer %d: %w", i+1, err)
		}
		t.steps = append(t.steps, steps...)
	}
	if !byteLevel {
		return fmt.Errorf("no ByteLevel pre_tokenizer: a vocabulary of characters is not supported")
	}
	return nil
}

func (p *part) steps() ([]step, error) {
	switch p.Type {
	case "ByteLevel":
		return p.byteLevel(), nil
	case "Digits":
		return []step{digitsStep(p.Individual)}, nil
	case "Split":
		s, err := p.split()
		return []step{s}, err
	}
	return nil, fmt.Errorf("type %q is not supported", p.Type)
}

func (p *part) byteLevel() (steps []step) {
	if p.AddPrefixSpace {
		steps = append(steps, prefixSpace)
	}
	if p.UseRegex == nil || *p.UseRegex {
		steps = append(steps, rules[patternGPT2].step)
	}
	return steps
}

// prefixSpace begins each piece with a space.
func prefixSpace(piece string, part func(string)) error {
	if piece[0] != ' ' {
		piece = " " + piece
	}
	part(piece)
	return nil
}

func (p *part) split() (step, error) {
	drop := p.Behavior == "Removed" && p.Invert
	if !drop && (p.Behavior != "Isolated" || p.Invert) {
		return nil, fmt.Errorf("split with behavior %q, invert %v is not supported: want Isolated, or Removed and inverted",
			p.Behavior, p.Invert)
	}
	switch {
	case p.Pattern.Regex != nil:
		return patternStep(*p.Pattern.Regex, drop)
	case p.Pattern.String != nil && *p.Pattern.String != "":
		return literalStep(*p.Pattern.String, drop), nil
	}
	return nil, fmt.Errorf("split without a pattern: want Regex or String")
}

// readFrame reads what the post-processors put around a text.
func (t *Tokenizer) readFrame(v jsontext.Value) error {
	parts, err := flatten("post_processor", v, 0)
	if err != nil {
		return err
	}
	for _, p := range parts {
		switch p.Type {
		case "ByteLevel": // it is about offsets only
		case "TemplateProcessing":
			if err := t.readTemplate(&p); err != nil {
				return fmt.Errorf("post_processor: %w", err)
			}
		default:
			return fmt.Errorf("post_processor %q is not supported", p.Type)
		}
	}
	return nil
}

func (t *Tokenizer) readTemplate(p *part) error {
	var before, after []uint32
	side, texts := &before, 0
	for _, piece := range p.Single {
		if piece.Sequence != nil {
			side = &after
			texts++
			continue
		}
		if piece.SpecialToken == nil {
			return fmt.Errorf("template with a piece that is neither text nor special token")
		}
		token, ok := p.Special[piece.SpecialToken.ID]
		if !ok {
			return fmt.Errorf("template names the token %q, which it doesn't define", piece.SpecialToken.ID)
		}
		*side = append(*side, token.IDs...)
	}
	if texts != 1 {
		return fmt.Errorf("template has the text %d times, want once", texts)
	}
	t.before, t.after = append(before, t.before...), append(t.after, after...)
	return nil
}
