package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"kvca/state/cbr"
)

// call is one question to one engine, in some dialect.
type call struct {
	engine   Engine
	endpoint cbr.Endpoint
	body     []byte // the client's request
	limit    int    // token ids
	media    int    // length of a body that has media, else 0
}

// dialect asks an engine for the tokens of a call's request.
type dialect func(ctx context.Context, c *call) (found, error)

// dialects are the ways that ask engines.
var dialects = [wayLocal]dialect{
	wayRender:   askRender,
	wayTokenize: askTokenize,
	wayLlamaCPP: askLlamaCPP,
	wayTGI:      askTGI,
}

// unreachableError is an engine that could not be asked, or broke off: another one
// may do.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// statusError is an answer that is none.
type statusError struct {
	target string
	status int
	text   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.target, e.status, e.text)
}

// errNoTokens is an answer that reads well and holds no tokens: an engine that
// has such a path, but for other questions.
var errNoTokens = errors.New("the answer has no tokens")

// Whether an error means that an engine has no such way. Of a way that has worked,
// some answers mean that the request is to blame.
func meansAbsent(err error, worked bool) bool {
	var s *statusError
	if !errors.As(err, &s) {
		return errors.Is(err, errNoTokens) && !worked
	}
	switch s.status {
	case http.StatusNotFound, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType:
		return !worked
	}
	return false
}

// meansNext reports whether another engine should be asked.
func meansNext(err error) bool {
	var u *unreachableError
	var s *statusError
	return errors.As(err, &u) || errors.As(err, &s) && s.status >= 500 && s.status != http.StatusNotImplemented
}

// asJSON is not changed by anybody.
var asJSON = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}

// post asks and reads the answer.
func (c *call) post(ctx context.Context, target string, body []byte, read func(*answerReader) error) error {
	resp, err := c.engine.Do(ctx, http.MethodPost, target, asJSON, body)
	if err != nil {
		return &unreachableError{fmt.Errorf("ask %s: %w", c.engine.ID(), err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &statusError{target: c.engine.ID() + target, status: resp.StatusCode, text: excerpt(resp.Body)}
	}
	watched := &watchedReader{r: resp.Body}
	most := answerBytes(c.limit, c.media)
	bounded := &io.LimitedReader{R: watched, N: most}
	err = read(newAnswerReader(bounded, c.limit))
	switch {
	case err != nil && watched.err != nil:
		return &unreachableError{fmt.Errorf("ask %s: %w", c.engine.ID(), watched.err)}
	case err != nil && bounded.N <= 0:
		return fmt.Errorf("%s%s: the answer exceeds %d bytes, more than the tokens of this prompt can take", c.engine.ID(), target, most)
	case err != nil:
		return fmt.Errorf("%s%s: %w", c.engine.ID(), target, err)
	}
	// What is left is a line's end; with it read, the connection serves again.
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<10)
	return nil
}

// watchedReader tells an answer that broke off from one that makes no sense.
type watchedReader struct {
	r   io.Reader
	err error
}

func (w *watchedReader) Read(b []byte) (int, error) {
	n, err := w.r.Read(b)
	if err != nil && err != io.EOF { // as io.Reader has it, unwrapped
		w.err = err
	}
	return n, err
}

// excerpt is the beginning of an error's text, for people.
func excerpt(r io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(r, 256))
	return strings.ToValidUTF8(strings.TrimSpace(string(text)), "?")
}

// needTokens is the last step of every dialect.
func needTokens(f found, err error) (found, error) {
	if err == nil && len(f.tokens) == 0 {
		err = errNoTokens
	}
	return f, err
}
