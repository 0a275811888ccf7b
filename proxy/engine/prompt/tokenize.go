package prompt

import "context"

// askTokenize asks /tokenize as vLLM and SGLang have it, with a body of its own.
func askTokenize(ctx context.Context, c *call) (found, error) {
	body, err := tokenizeBody(c.endpoint, c.body)
	if err != nil {
		return found{}, err
	}
	var f found
	err = c.post(ctx, "/tokenize", body, func(a *answerReader) (err error) {
		f, err = a.listed()
		return err
	})
	return needTokens(f, err)
}
