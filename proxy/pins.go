package proxy

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"kvca/router"
)

// Bounds of what is remembered of responses: about 200 bytes each.
const (
	maxPins       = 1 << 16
	maxAbsent     = 1 << 12
	maxResponseID = 128 // bytes; longer ids are not remembered
)

// pins remembers the id of the backend that keeps a response, the least recently
// used forgotten first, and for a moment which responses nobody keeps.
type pins struct {
	cache    *lru.Cache[string, string]
	absent   *lru.Cache[string, time.Time]
	searches chan struct{} // a place for each search that goes on
}

func newPins() *pins {
	return &pins{newLRU[string](maxPins), newLRU[time.Time](maxAbsent), make(chan struct{}, maxSearches)}
}

func newLRU[V any](size int) *lru.Cache[string, V] {
	cache, err := lru.New[string, V](size)
	if err != nil {
		panic(err) // only for a size below one
	}
	return cache
}

func (p *pins) put(response, backend string) {
	if len(response) <= maxResponseID {
		p.cache.Add(response, backend)
	}
}

func (p *pins) putAbsent(response string, now time.Time) { p.absent.Add(response, now) }

func (p *pins) isAbsent(response string, now time.Time) bool {
	since, known := p.absent.Get(response)
	return known && now.Sub(since) < absentTime
}

// keeper is the backend that is remembered to keep a response, nil where there is
// none among those: it may have been removed since, or be there again under its id.
func (p *pins) keeper(response string, among []*router.Backend) *router.Backend {
	id, known := p.cache.Get(response)
	if !known {
		return nil
	}
	for _, b := range among {
		if b.ID == id {
			return b
		}
	}
	return nil
}
