package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"kvca/proxy/steer"
)

// hopByHop headers belong to one connection (RFC 9110, 7.6.1), in either
// direction. Those that Connection names are added to them.
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func stripHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.TrimSpace(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// priorityHeader steers the engine's scheduler; it is never a client's to set.
const priorityHeader = "X-Gateway-Priority"

// prepareHeader makes the client's header the one that backends are sent. It is
// changed in place: nobody else reads it after this.
func (x *exchange) prepareHeader() {
	h := x.r.Header
	stripHopByHop(h)
	delete(h, "Expect")
	x.setPriority(h)
	if !x.trusted {
		dropUnderscores(h)
	}
	if x.cfg.Steering.Headers && !x.trusted {
		steer.StripHeaders(h)
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // or net/http adds one of its own
	}
	h["X-Request-Id"] = []string{x.id}
	x.forwardedFor(h)
}

// dropUnderscores takes away headers that some engines' servers take for those with
// hyphens, as nginx does: X_Gateway_Priority would be the client's own.
func dropUnderscores(h http.Header) {
	for name := range h {
		if strings.Contains(name, "_") {
			delete(h, name)
		}
	}
}

// setPriority says the tenant's priority to the engine's scheduler, where that is
// switched on. A client's own word counts only where it is trusted.
func (x *exchange) setPriority(h http.Header) {
	if x.trusted {
		return
	}
	delete(h, priorityHeader)
	if x.cfg.EnginePriority && x.tenant != nil {
		h[priorityHeader] = []string{strconv.Itoa(x.tenant.Priority)}
	}
}

// forwardedFor says who the client is. What the client itself said of that
// counts only if it is a proxy that the operator trusts.
func (x *exchange) forwardedFor(h http.Header) {
	host, _, err := net.SplitHostPort(x.r.RemoteAddr)
	if err != nil {
		host = x.r.RemoteAddr
	}
	prior := h["X-Forwarded-For"]
	if len(x.cfg.TrustedProxies) == 0 || !x.cfg.trusts(parseAddr(host)) {
		delete(h, "Forwarded")
		prior = nil
		h["X-Forwarded-Host"] = []string{x.r.Host}
		h["X-Forwarded-Proto"] = []string{scheme(x.r)}
	}
	if len(prior) > 0 {
		host = strings.Join(prior, ", ") + ", " + host
	}
	h["X-Forwarded-For"] = []string{host}
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func (c *current) trusts(addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	for _, prefix := range c.TrustedProxies {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// requestID is the client's own id if it is fit for a log line, else a new one.
func requestID(h http.Header) string {
	if ids := h["X-Request-Id"]; len(ids) == 1 && fitID(ids[0]) {
		return ids[0]
	}
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func fitID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// copyHeader gives the client the backend's headers, apart from those of its
// connection, and keeps ours.
func (x *exchange) copyHeader(from http.Header) {
	stripHopByHop(from)
	to := x.w.Header()
	for name, values := range from {
		if name != "X-Request-Id" {
			to[name] = values
		}
	}
	if x.cfg.DebugHeaders {
		x.debugHeader(to)
	}
}
