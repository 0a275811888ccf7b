package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"kvca/proxy/backend"
	"kvca/router"
)

// A response that was made through another node, or before this one started, is not
// remembered here: then the backends are asked who keeps it. That needs no state of
// the cluster, and what they say is true.
const (
	searchTime     = 3 * time.Second // in all: a busy engine may take a while
	searchParallel = 16              // backends that are asked at a time
	maxSearches    = 32              // that go on at a time; more wait, within searchTime
	absentTime     = 5 * time.Second // for which nobody is asked again about an unknown id
	searchBytes    = 64 << 10        // of an answer, in which its id must stand
)

// verdict is what one backend says of a response, or all of them.
type verdict uint8

const (
	absent verdict = iota
	kept
	unclear // it did not answer
)

// keeperOf finds which of the backends keeps a response, nil for none of them. The
// error says that this can't be told now.
func (x *exchange) keeperOf(id string, among []*router.Backend) (*router.Backend, error) {
	if b := x.p.pins.keeper(id, among); b != nil {
		return b, nil
	}
	switch {
	case len(among) == 0:
		return nil, nil
	case len(among) == 1:
		return among[0], nil // its own answer says best whether it does
	case !fitResponseID(id), x.p.pins.isAbsent(id, time.Now()):
		return nil, nil
	}
	b, v := x.search(id, among)
	x.p.metrics.searches.WithLabelValues(v.String()).Inc()
	switch v {
	case kept:
		x.p.pins.put(id, b.ID)
		return b, nil
	case absent:
		x.p.pins.putAbsent(id, time.Now())
		return nil, nil
	}
	return nil, keeperAway(id)
}

func (v verdict) String() string { return [...]string{"absent", "found", "unclear"}[v] }

// keeperAway is the answer where only a backend that is away can have the response.
func keeperAway(id string) *apiError {
	e := unavailable("response_unavailable", "The backend that keeps the response "+quoteShort(id)+" can't be asked now. Try again, or send the whole conversation instead.")
	e.param = "response_id"
	return e
}

// pinTo leaves the request to the one backend that can answer it.
func (x *exchange) pinTo(b *router.Backend, id string) error {
	if s := b.Standing(); s == router.Unhealthy || s == router.Starting {
		return keeperAway(id)
	}
	x.members, x.want.Pin = []*router.Backend{b}, b
	return nil
}

// search asks the backends. A backend that is away may be the one.
func (x *exchange) search(id string, among []*router.Backend) (*router.Backend, verdict) {
	ctx, cancel := context.WithTimeout(x.r.Context(), searchTime)
	defer cancel()
	select {
	case x.p.pins.searches <- struct{}{}:
		defer func() { <-x.p.pins.searches }()
	case <-ctx.Done():
		return nil, unclear
	}
	if b := x.p.pins.keeper(id, among); b != nil { // found while this one waited
		return b, kept
	}
	if x.p.pins.isAbsent(id, time.Now()) {
		return nil, absent
	}
	var (
		next    atomic.Int64
		doubt   atomic.Bool
		found   atomic.Pointer[router.Backend]
		askers  sync.WaitGroup
		header  = x.searchHeader()
		ask     = "/v1/responses/" + url.PathEscape(id)
		workers = min(searchParallel, len(among))
	)
	for range workers {
		askers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(among) && ctx.Err() == nil; i = next.Add(1) - 1 {
				switch keeps(ctx, x.p.pool.Of(among[i]), ask, id, header) {
				case kept:
					found.Store(among[i])
					cancel()
				case unclear:
					doubt.Store(true)
				}
			}
		})
	}
	askers.Wait()
	switch b := found.Load(); {
	case b != nil:
		return b, kept
	case doubt.Load() || ctx.Err() != nil:
		return nil, unclear
	}
	return nil, absent
}

// searchHeader is what backends are asked with: engines may want the client's key.
func (x *exchange) searchHeader() http.Header {
	h := http.Header{"User-Agent": {"kvca"}, "X-Request-Id": {x.id}}
	for _, name := range keyHeaders {
		if values := x.r.Header[name]; values != nil {
			h[name] = values
		}
	}
	return h
}

// keeps asks one backend, nil for one that has been removed.
func keeps(ctx context.Context, b *backend.Backend, path, id string, header http.Header) verdict {
	if b == nil {
		return absent
	}
	if s := b.Facts().Standing(); s == router.Unhealthy || s == router.Starting {
		return unclear
	}
	resp, err := b.Do(ctx, http.MethodGet, path, header, nil)
	if err != nil {
		return unclear
	}
	defer resp.Body.Close()
	beginning, err := io.ReadAll(io.LimitReader(resp.Body, searchBytes))
	switch {
	case err != nil, resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented:
		return unclear
	case resp.StatusCode == http.StatusOK && bytes.Contains(beginning, []byte(`"`+id+`"`)):
		return kept
	}
	return absent
}

// fitResponseID is whether an id may be one that an engine made: others are not worth
// asking for.
func fitResponseID(id string) bool {
	if id == "" || len(id) > maxResponseID || id[0] == '.' {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if c-'0' > 9 && (c|0x20)-'a' > 25 && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}
