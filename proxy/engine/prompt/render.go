package prompt

import (
	"context"

	"kvca/state/cbr"
)

// askRender asks vLLM's renderer, which takes the request itself and does what the
// engine does: exact by construction. A completions request may have several
// prompts and is answered by a list.
func askRender(ctx context.Context, c *call) (found, error) {
	var f found
	err := c.post(ctx, c.endpoint.String()+"/render", c.body, func(a *answerReader) (err error) {
		if c.endpoint == cbr.Completions {
			f, err = a.renderedFirst()
		} else {
			f, err = a.rendered()
		}
		return err
	})
	return needTokens(f, err)
}
