package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"kvca/proxy/tenant"
)

// Tenants knows whose key a request has. Its error is shown to the client.
type Tenants interface {
	Find(h http.Header) (*tenant.Tenant, error)
}

// keyHeaders carry a client's key.
var keyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key"}

// authenticate finds whose request it is. A key that was checked here is no
// business of the backend's.
func (x *exchange) authenticate() error {
	if x.trusted = isTrusted(x.r); x.trusted || x.cfg.Tenants == nil {
		return nil
	}
	if x.endpoint.socket {
		liftKey(x.r.Header)
	}
	t, err := x.cfg.Tenants.Find(x.r.Header)
	if err != nil {
		x.w.Header()["Www-Authenticate"] = []string{`Bearer realm="kvca"`}
		return &apiError{status: http.StatusUnauthorized, code: "invalid_api_key", message: sentence(err)}
	}
	x.tenant, x.trusted = t, t.Trusted
	for _, name := range keyHeaders {
		delete(x.r.Header, name)
	}
	return nil
}

// sentence makes an error one for people.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):] + "."
}

// permitted is whether the request's tenant may use a model.
func (x *exchange) permitted(model string) bool { return x.tenant == nil || x.tenant.Allows(model) }

// restricted is whether there are models that its tenant may not use.
func (x *exchange) restricted() bool { return x.tenant != nil && len(x.tenant.Models) > 0 }

// forbidden refuses a model that exists and is not the tenant's to use.
func forbidden(model string) *apiError {
	return &apiError{
		status: http.StatusForbidden, code: "model_not_allowed", param: "model",
		message: "The model " + quoteShort(model) + " may not be used with the key that was sent, or without one. GET /v1/models lists those that may.",
	}
}

// trustedKey marks the contexts of requests to a listener for trusted clients.
type trustedKey struct{}

// Trusted serves clients that the operator trusts as itself: they need no key, and
// may steer engines. Everything else is as for any client.
func (p *Proxy) Trusted() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), trustedKey{}, true)))
	})
}

// isTrusted is whether the request came to a listener for trusted clients.
func isTrusted(r *http.Request) bool { return r.Context().Value(trustedKey{}) != nil }

// client is the address of who sent the request: the last one that no trusted
// proxy has.
func (c *current) client(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	addr := parseAddr(host)
	if len(c.TrustedProxies) == 0 || !c.trusts(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop := parseAddr(strings.TrimSpace(hops[i]))
		if !hop.IsValid() {
			return addr
		}
		if addr = hop; !c.trusts(addr) {
			return addr
		}
	}
	return addr
}

// parseAddr is the zero address for what is none.
func parseAddr(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}
