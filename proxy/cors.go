package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	maxAskedHeaders = 4 << 10 // of what a preflight asks for
	preflightAge    = "600"   // seconds for which a browser need not ask again
	exposedHeaders  = "X-Request-Id, X-KVCA-Model, Retry-After"
	corsPrefix      = "Access-Control-"
)

// shareWithBrowsers lets pages of allowed origins read the answer, and answers
// OPTIONS itself: then it returns true.
func (x *exchange) shareWithBrowsers() (answered bool) {
	allowed := x.shareOrigin()
	if x.r.Method != http.MethodOptions {
		return false
	}
	if x.endpoint = x.cfg.endpointOf(x.r.URL.Path); x.endpoint == nil {
		return false
	}
	h, methods := x.w.Header(), strings.Join(append(slices.Clone(x.endpoint.methods), http.MethodOptions), ", ")
	h["Allow"] = []string{methods}
	if allowed && x.r.Header.Get("Access-Control-Request-Method") != "" {
		h["Access-Control-Allow-Methods"] = []string{methods}
		h["Access-Control-Max-Age"] = []string{preflightAge}
		if asked := x.r.Header.Get("Access-Control-Request-Headers"); asked != "" && len(asked) <= maxAskedHeaders {
			h["Access-Control-Allow-Headers"] = []string{asked}
		}
	}
	x.status, x.started = http.StatusNoContent, true
	x.w.WriteHeader(x.status)
	return true
}

// shareOrigin says in the answer's header which origin may read it.
func (x *exchange) shareOrigin() bool {
	if len(x.cfg.AllowedOrigins) == 0 {
		return false
	}
	h, origin := x.w.Header(), x.r.Header.Get("Origin")
	switch {
	case slices.Contains(x.cfg.AllowedOrigins, "*"):
		h["Access-Control-Allow-Origin"] = []string{"*"}
	case origin == "", !slices.Contains(x.cfg.AllowedOrigins, strings.ToLower(origin)):
		h["Vary"] = []string{"Origin"}
		return false
	default:
		h["Vary"] = []string{"Origin"}
		h["Access-Control-Allow-Origin"] = []string{origin}
	}
	h["Access-Control-Expose-Headers"] = []string{exposedHeaders}
	return true
}

// ownSharing takes out what a backend says of origins, where the gateway decides.
func (x *exchange) ownSharing(from http.Header) {
	if len(x.cfg.AllowedOrigins) == 0 {
		return
	}
	for name := range from {
		if strings.HasPrefix(name, corsPrefix) {
			delete(from, name)
		}
	}
	if ours, theirs := x.w.Header()["Vary"], from["Vary"]; ours != nil && theirs != nil {
		from["Vary"] = append(slices.Clone(theirs), ours...)
	}
}

// originFaults are the faults of Config.AllowedOrigins.
func (c *Config) originFaults() error {
	var faults []error
	for _, origin := range c.AllowedOrigins {
		if origin == "*" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.ToLower(origin) != origin {
			faults = append(faults, fmt.Errorf("allowed_origin %q: want * or scheme://host[:port] in lower case, such as https://chat.example.com", origin))
		}
	}
	return errors.Join(faults...)
}
