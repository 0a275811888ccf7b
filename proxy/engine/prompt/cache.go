package prompt

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvca/state/kvindex"
)

// entry is a prompt whose tokens are known. It is never changed.
type entry struct {
	tokens []uint32
	media  []kvindex.Media
	salt   string
	// several is whether these are the first of more than one prompt.
	several bool
	source  string
	// by is the way that it was found, nil where the engine itself told with an
	// answer; epoch is that way's at the time. A way that has been thrown out takes
	// what it found with it.
	by    *wayState
	epoch uint32
}

// entryBytes is what an entry takes besides its tokens: the entry, its place in
// the list and its slot in the map.
const entryBytes = 256

func (e *entry) bytes() int64 {
	n := entryBytes + 4*int64(cap(e.tokens)) + int64(len(e.salt))
	for i := range e.media {
		n += 40 + int64(len(e.media[i].ID))
	}
	return n
}

func (e *entry) stale() bool { return e.by != nil && e.by.epoch.Load() != e.epoch }

// cache remembers prompts by key, the least recently used forgotten first. It is
// bounded in bytes: an entry that exceeds the bound by itself is not taken.
type cache struct {
	mu       sync.Mutex
	list     *simplelru.LRU[uint64, *entry]
	bytes    int64
	maxBytes int64
}

func newCache(maxBytes int64) *cache {
	c := &cache{maxBytes: maxBytes}
	list, err := simplelru.NewLRU(math.MaxInt, func(_ uint64, e *entry) { c.bytes -= e.bytes() })
	if err != nil {
		panic(err) // only for a size below one
	}
	c.list = list
	return c
}

// get returns nil for what is not there.
func (c *cache) get(key uint64) *entry {
	if key == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.list.Get(key)
	switch {
	case !ok:
		return nil
	case e.stale():
		c.list.Remove(key)
		return nil
	}
	return e
}

func (c *cache) put(key uint64, e *entry) {
	size := e.bytes()
	if key == 0 || size > c.maxBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list.Remove(key)
	c.list.Add(key, e)
	for c.bytes += size; c.bytes > c.maxBytes; {
		c.list.RemoveOldest()
	}
}

func (c *cache) size() (entries int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list.Len(), c.bytes
}
