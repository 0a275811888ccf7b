package fake

import (
	"hash/maphash"
	"sync"
)

// maxCached bounds the entries of each part of a backend's pretended cache; a
// part that is full starts anew.
const maxCached = 1 << 16

// bytesPerToken is what a token is taken to be, as in ordinary English chats.
const bytesPerToken = 4

// cache pretends to be a prefix cache, from whole bodies alone.
type cache struct {
	seed maphash.Seed

	mu sync.Mutex
	// bodies and starts are hashes of whole bodies and of what precedes the
	// first marker; turns is the longest body of each conversation, in bytes.
	bodies map[uint64]struct{}
	starts map[uint64]struct{}
	turns  map[int]int
}

func newCache() *cache {
	return &cache{
		seed:   maphash.MakeSeed(),
		bodies: map[uint64]struct{}{},
		starts: map[uint64]struct{}{},
		turns:  map[int]int{},
	}
}

// admit returns how many bytes of body the cache held, and holds it from now on.
func (c *cache) admit(body []byte, m mark, marked bool) int {
	if !marked {
		return c.admitBody(body)
	}
	start := maphash.Bytes(c.seed, body[:m.first])
	c.mu.Lock()
	defer c.mu.Unlock()
	held := min(c.turns[m.conversation], len(body))
	if _, ok := c.starts[start]; ok {
		held = max(held, m.first)
	}
	c.starts = put(c.starts, start, struct{}{})
	c.turns = put(c.turns, m.conversation, max(len(body), c.turns[m.conversation]))
	return held
}

func (c *cache) admitBody(body []byte) int {
	key := maphash.Bytes(c.seed, body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.bodies[key]; ok {
		return len(body)
	}
	c.bodies = put(c.bodies, key, struct{}{})
	return 0
}

func put[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if len(m) >= maxCached {
		m = map[K]V{}
	}
	m[key] = value
	return m
}
