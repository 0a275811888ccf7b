package proxy

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"kvca/router"
)

// maxPins bounds how many responses are remembered: about 200 bytes each.
const maxPins = 1 << 16

// pins remembers which backend keeps which response, the least recently used
// forgotten first.
type pins struct {
	cache *lru.Cache[string, *router.Backend]
}

func newPins() *pins {
	cache, err := lru.New[string, *router.Backend](maxPins)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &pins{cache}
}

func (p *pins) get(id string) *router.Backend {
	b, _ := p.cache.Get(id)
	return b
}

func (p *pins) put(id string, b *router.Backend) {
	if len(id) <= 128 {
		p.cache.Add(id, b)
	}
}
