package prompt

import (
	"context"
	"fmt"

	"kvca/state/cbr"
)

// askTGI asks text-generation-inference: its tokenizers answer with a list of
// objects, one a token.
func askTGI(ctx context.Context, c *call) (found, error) {
	var f found
	if c.endpoint == cbr.Completions {
		body, err := tgiPrompt(c.body)
		if err != nil {
			return found{}, err
		}
		err = c.post(ctx, "/tokenize", body, func(a *answerReader) (err error) {
			f.tokens, err = a.idObjects()
			return err
		})
		return needTokens(f, err)
	}
	err := c.post(ctx, "/chat_tokenize", c.body, func(a *answerReader) error {
		return a.members(func(name string) (err error) {
			if name != "tokenize_response" {
				return a.d.SkipValue()
			}
			f.tokens, err = a.idObjects()
			return err
		})
	})
	return needTokens(f, err)
}

func tgiPrompt(body []byte) ([]byte, error) {
	_, prompt, special, err := promptOf(body)
	if err != nil {
		return nil, err
	}
	var s splicer
	s.set("inputs", prompt)
	s.set("add_special_tokens", special)
	return s.object(), nil
}

// idObjects reads [{"id":1,...},...].
func (a *answerReader) idObjects() ([]uint32, error) {
	var ids []uint32
	err := a.elements(func(i int) error {
		if i >= a.limit {
			return fmt.Errorf("more than %d token ids for this prompt", a.limit)
		}
		id := -1
		err := a.members(func(name string) (err error) {
			if name != "id" {
				return a.d.SkipValue()
			}
			id, err = a.whole()
			return err
		})
		if err == nil && id < 0 {
			err = errIDs
		}
		ids = append(ids, uint32(id))
		return err
	})
	return ids, err
}
