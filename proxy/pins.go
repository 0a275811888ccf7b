package proxy

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"kvca/router"
)

// maxPins bounds how many responses are remembered: about 200 bytes each.
const maxPins = 1 << 16

// pins remembers the id of the backend that keeps a response, the least recently
// used forgotten first.
type pins struct{ cache *lru.Cache[string, string] }

func newPins() *pins {
	cache, err := lru.New[string, string](maxPins)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &pins{cache}
}

func (p *pins) put(response, backend string) {
	if len(response) <= 128 {
		p.cache.Add(response, backend)
	}
}

// keeper is the backend that keeps a response, nil where none is known to: it may
// have been removed since, or be there again under its id.
func (p *Proxy) keeper(response string) *router.Backend {
	id, known := p.pins.cache.Get(response)
	if !known {
		return nil
	}
	for _, b := range p.pool.All() {
		if b.ID == id {
			return b
		}
	}
	return nil
}
