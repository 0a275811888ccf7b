package proxy

import (
	"errors"
	"net/http"

	"kvca/router"
	"kvca/state/cbr"
)

// explain answers what would be decided now for a request's body. It sends,
// books and learns nothing.
func (a *admin) explain(w http.ResponseWriter, r *http.Request) {
	decision, err := a.Proxy.explain(w, r)
	switch {
	case errors.Is(err, errClientGone):
	case err != nil:
		unreadable(err).write(w, openAIStyle, requestID(r.Header))
	default:
		writeJSON(w, http.StatusOK, decision)
	}
}

// explanation is a decision, and how right the precise index has been about each
// backend that it covers.
type explanation struct {
	router.Decision
	CachedTokens map[string]cachedRecord `json:"cached_tokens,omitempty"`
}

func (p *Proxy) explain(w http.ResponseWriter, r *http.Request) (*explanation, error) {
	path := r.URL.Query().Get("endpoint")
	if path == "" {
		path = cbr.Chat.String()
	}
	cfg := p.config()
	endpoint := cfg.endpoints[path]
	if endpoint == nil {
		return nil, badRequest("unknown_endpoint", "There is no endpoint "+quoteShort(path)+": use a path of the client API, such as /v1/completions.", "endpoint")
	}
	x := &exchange{p: p, cfg: cfg, w: w, r: r, endpoint: endpoint}
	x.upload.budget = &p.budget
	defer x.forget()
	defer x.dismiss()
	if err := x.read(); err != nil {
		return nil, err
	}
	if err := x.steer(); err != nil {
		return nil, err
	}
	if err := x.identify(); err != nil {
		return nil, err
	}
	x.consult()
	decision, err := p.router.Explain(&x.want, x.members)
	if err != nil {
		return nil, x.upstreamError(err)
	}
	e := &explanation{Decision: decision}
	if k := cfg.Knowledge; k != nil {
		e.CachedTokens = k.records.all(x.members)
	}
	return e, nil
}
