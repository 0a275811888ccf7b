package proxy

import (
	"net/http"
	"time"

	"kvca/proxy/tenant"
)

// admit books the request with its tenant's limits. What it will cost is guessed
// from the body's length, since the engine alone counts tokens, and only when it
// has answered: then the guess is corrected.
func (x *exchange) admit() error {
	if x.tenant == nil || x.cfg.Limiter == nil || x.admitted {
		return nil
	}
	permit, refusal := x.cfg.Limiter.Admit(x.r.Context(), x.tenant, x.name.Model, x.guess())
	if refusal != nil {
		return &apiError{
			status: http.StatusTooManyRequests, code: "rate_limit_exceeded", retryAfter: int(refusal.RetryAfter / time.Second),
			message: "The limit of " + limitNames[refusal.Why] + " is reached for this key. Try again later.",
		}
	}
	x.permit, x.admitted = permit, true
	return nil
}

// admitAnew books the request as one of another model.
func (x *exchange) admitAnew() error {
	x.permit.Close()
	x.permit, x.admitted = tenant.Permit{}, false
	return x.admit()
}

// limitNames are the kinds of limits for people.
var limitNames = map[string]string{
	"requests": "requests a second", "tokens": "tokens a second", "concurrency": "requests at the same time",
}

// bytesPerToken is that of English text in the large vocabularies.
const bytesPerToken = 4

// guess is about how many tokens the request may take, before anyone has counted. A
// minute of speech is a megabyte, and no quarter of a million tokens.
func (x *exchange) guess() int64 {
	if !x.endpoint.computes {
		return 1
	}
	return max(x.want.Bytes/bytesPerToken, 1)
}

// settle corrects the guess by what the engine counted.
func (x *exchange) settle(u usage) { x.permit.Settle(u.prompt + max(u.completion, 0)) }
