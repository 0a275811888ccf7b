package prompt

import (
	"bytes"
	"context"

	"kvca/state/cbr"
)

// askLlamaCPP asks llama.cpp's server: the text of a chat first, by the request
// itself, and then its tokens, with special tokens as the server itself has them.
func askLlamaCPP(ctx context.Context, c *call) (found, error) {
	text, err := c.llamaText(ctx)
	if err != nil {
		return found{}, err
	}
	var s splicer
	s.set("content", text)
	s.set("add_special", []byte("true"))
	s.set("parse_special", []byte("true"))
	var f found
	err = c.post(ctx, "/tokenize", s.object(), func(a *answerReader) (err error) {
		f, err = a.listed()
		return err
	})
	return needTokens(f, err)
}

// llamaText is the prompt's text as a JSON string.
func (c *call) llamaText(ctx context.Context) (text []byte, err error) {
	if c.endpoint == cbr.Completions {
		_, text, _, err = promptOf(c.body)
		return text, err
	}
	err = c.post(ctx, "/apply-template", c.body, func(a *answerReader) error {
		return a.members(func(name string) error {
			if name != "prompt" {
				return a.d.SkipValue()
			}
			raw, err := a.d.ReadValue()
			text = bytes.Clone(raw)
			return err
		})
	})
	if err == nil && kindOf(text) != '"' {
		err = errNoTokens
	}
	return text, err
}
