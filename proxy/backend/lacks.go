package backend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxRefusalBytes is how much of an answer is read to find out why it is a 404.
const maxRefusalBytes = 4 << 10

// LacksModel reports whether an answer of Do says that the engine has no model of
// that name. It reads a 404's body, which can be read again afterwards; of any
// other answer it reads nothing.
func LacksModel(resp *http.Response, model string) bool {
	e, ours := resp.Body.(*exchange)
	if !ours || resp.StatusCode != http.StatusNotFound || resp.Header.Get("Content-Encoding") != "" {
		return false
	}
	return saysNoModel(e.peek(maxRefusalBytes), model)
}

// peek reads up to limit bytes of the answer's body and puts them back.
func (e *exchange) peek(limit int64) []byte {
	begin, _ := io.ReadAll(io.LimitReader(e.answer, limit)) // what failed fails again for who reads on
	e.answer = &peeked{io.MultiReader(bytes.NewReader(begin), e.answer), e.answer}
	return begin
}

// peeked is a body with what was read of it before it.
type peeked struct {
	io.Reader
	io.Closer
}

// refusal is an error as engines write it: of OpenAI's shape, or, up to vLLM 0.10,
// flat.
type refusal struct {
	Message string          `json:"message"`
	Code    json.RawMessage `json:"code"`
	Error   json.RawMessage `json:"error"`
}

// saysNoModel reports whether an error's body says that there is no such model. The
// name must stand in quotes in the message, or the code must say so: other things
// are not found too, a stored response for one.
func saysNoModel(body []byte, model string) bool {
	var outer, inner refusal
	if json.Unmarshal(body, &outer) != nil {
		return false
	}
	r := &outer
	if len(outer.Error) > 0 {
		if json.Unmarshal(outer.Error, &inner) != nil {
			return false
		}
		r = &inner
	}
	if string(r.Code) == `"model_not_found"` {
		return true
	}
	text := strings.ToLower(r.Message)
	if !strings.Contains(text, "does not exist") && !strings.Contains(text, "not found") {
		return false
	}
	return slices.ContainsFunc([]string{"`", "'", `"`}, func(quote string) bool {
		return model != "" && strings.Contains(r.Message, quote+model+quote)
	})
}

// Lacks takes in that the engine answered that it has no such model: an adapter was
// unloaded. No request for it is routed here until the engine lists it again, and
// the list is read soon. Of a configured list nothing is taken off.
func (b *Backend) Lacks(model string) {
	b.mu.Lock()
	at := slices.Index(b.engine.models, model)
	if at < 0 || len(b.config.Models) > 0 {
		b.mu.Unlock()
		return
	}
	b.engine.models = slices.Delete(slices.Clone(b.engine.models), at, at+1)
	b.mu.Unlock()
	b.pool.mu.Lock()
	b.pool.publish()
	b.pool.mu.Unlock()
	b.pool.log.Info("backend has a model no more", "backend", b.config.ID, "model", model)
	b.relist.Store(true)
	b.probeNow()
}
