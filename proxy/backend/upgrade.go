package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// Upgrade asks for a WebSocket and returns the answer. The body of a 101 is the
// connection itself, an io.ReadWriteCloser that can also CloseWrite; it is the
// caller's, ends with nothing but its Close or ctx, and no longer counts among MaxConns. A
// backend that speaks HTTP/2 alone has none; one that does not answer within
// UpgradeTimeout has failed.
func (b *Backend) Upgrade(ctx context.Context, target string, header http.Header) (*http.Response, error) {
	if p := b.data.Protocols; p != nil && !p.HTTP1() {
		return nil, &Error{Backend: b.config.ID, Failure: LocalFailure, Err: fmt.Errorf("open WebSocket: %s speaks HTTP/2 only", b.config.URL)}
	}
	if header = maps.Clone(header); header == nil {
		header = make(http.Header, 2)
	}
	header["Connection"], header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	// The context lives as long as the connection, so it must not end with the wait.
	ctx, cut := context.WithCancelCause(ctx)
	wait := time.AfterFunc(b.pool.config.UpgradeTimeout, func() { cut(errNoUpgrade) })
	resp, err := b.Do(ctx, http.MethodGet, target, header, nil)
	if wait.Stop() || context.Cause(ctx) != errNoUpgrade {
		return resp, err
	}
	if err == nil {
		resp.Body.Close()
	}
	return nil, &Error{Backend: b.config.ID, Failure: HeaderTimeout, Err: fmt.Errorf("open WebSocket: %w within %v", errNoUpgrade, b.pool.config.UpgradeTimeout)}
}

var errNoUpgrade = errors.New("no answer to the handshake")

// switched is whether the answer is the 101 that was asked for.
func switched(req *http.Request, resp *http.Response) bool {
	return resp.StatusCode == http.StatusSwitchingProtocols && req.Header["Upgrade"] != nil
}
