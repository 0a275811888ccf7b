package backend

import (
	"context"
	"fmt"
	"maps"
	"net/http"
)

// Upgrade asks for a WebSocket and returns the answer. The body of a 101 is the
// connection itself, an io.ReadWriteCloser that can also CloseWrite; it is the
// caller's, ends with nothing but its Close, and no longer counts among MaxConns. A
// backend that speaks HTTP/2 alone has none.
func (b *Backend) Upgrade(ctx context.Context, target string, header http.Header) (*http.Response, error) {
	if p := b.data.Protocols; p != nil && !p.HTTP1() {
		return nil, &Error{Backend: b.config.ID, Failure: LocalFailure, Err: fmt.Errorf("open WebSocket: %s speaks HTTP/2 only", b.config.URL)}
	}
	if header = maps.Clone(header); header == nil {
		header = make(http.Header, 2)
	}
	header["Connection"], header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	return b.Do(ctx, http.MethodGet, target, header, nil)
}

// switched is whether the answer is the 101 that was asked for.
func switched(req *http.Request, resp *http.Response) bool {
	return resp.StatusCode == http.StatusSwitchingProtocols && req.Header["Upgrade"] != nil
}
