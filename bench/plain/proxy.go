package plain

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// New makes a proxy over the backends with the given base URLs.
func New(backends []string) (http.Handler, error) {
	targets := make([]*url.URL, len(backends))
	for i, b := range backends {
		u, err := url.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("parse backend %s: %w", b, err)
		}
		targets[i] = u
	}
	if len(targets) == 0 {
		return nil, errors.New("no backend given")
	}
	var turn atomic.Uint64
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(targets[turn.Add(1)%uint64(len(targets))]) },
		Transport:     transport(),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}, nil
}

// transport keeps connections alive, which the default one does for two per
// backend only; without that the floor would be far too high.
func transport() *http.Transport {
	return &http.Transport{
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}
}
