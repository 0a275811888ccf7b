package proxy

import (
	"errors"
	"net/http"

	"kvca/proxy/steer"
	"kvca/state/cbr"
)

// Steering is what is done with fields by which a client steers an engine past the
// gateway. Trusted clients may use them all.
type Steering struct {
	// Strip are the fields that are taken away, Refuse those for which a request is
	// refused: names of top-level members, where a trailing * stands for any ending.
	Strip, Refuse []string
	// Headers is whether headers that do the same are taken away.
	Headers bool
}

// steer edits the body: an untrusted client's fields go, and a tenant's cache salt
// takes the place of the client's. The request is named by what backends are sent.
func (x *exchange) steer() error {
	rules := x.steering()
	if rules == nil || len(x.body) == 0 || x.isForm() {
		return nil // what a form holds is no JSON to anyone
	}
	body, refused, err := rules.Apply(x.body)
	var fault *steer.Error
	switch {
	case errors.As(err, &fault):
		return badRequest(fault.Code, sentence(fault), "")
	case err != nil:
		return err
	case refused != "":
		return &apiError{
			status: http.StatusForbidden, code: "field_not_allowed", param: refused,
			message: "The field " + quoteShort(refused) + " steers the engine and is not allowed here. Leave it out.",
		}
	case len(body) > 0 && &body[0] != &x.body[0]:
		return x.replaceBody(body)
	}
	return nil
}

// steering are the rules for this request, nil for none.
func (x *exchange) steering() *steer.Rules {
	var r steer.Rules
	if !x.trusted {
		r.Strip, r.Refuse = x.cfg.Steering.Strip, x.cfg.Steering.Refuse
	}
	if x.tenant != nil && x.endpoint.salted() {
		r.Salt = x.tenant.CacheSalt
	}
	if len(r.Strip) == 0 && len(r.Refuse) == 0 && r.Salt == "" {
		return nil
	}
	return &r
}

// salted is whether engines take a cache_salt there. Others refuse what they don't
// know, or leave it without effect.
func (e *endpoint) salted() bool {
	return e.cbr == cbr.Chat || e.cbr == cbr.Completions || e.cbr == cbr.Responses
}

// replaceBody puts b in the place of the body that was read, and gives that back.
func (x *exchange) replaceBody(b []byte) error {
	if err := x.upload.replace(b); err != nil {
		return err
	}
	x.body = b
	return nil
}
