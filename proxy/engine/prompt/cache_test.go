package prompt

import (
	"testing"

	"pgregory.net/rapid"

	"kvca/state/kvindex"
)

func TestCacheStaysWithinItsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 4096
		c := newCache(most)
		by := new(wayState)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.Uint64Range(0, 20).Draw(t, "key")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				c.get(key)
			case 1:
				by.epoch.Add(1)
			default:
				e := &entry{
					tokens: make([]uint32, rapid.IntRange(0, 1200).Draw(t, "tokens")), by: by, epoch: by.epoch.Load(),
					media: make([]kvindex.Media, rapid.IntRange(0, 2).Draw(t, "media")),
				}
				c.put(key, e)
				if fits := key != 0 && e.bytes() <= most; fits != (c.get(key) == e) {
					t.Fatalf("an entry of %d bytes under key %d: there is %v, want %v", e.bytes(), key, !fits, fits)
				}
			}
			var sum int64
			for _, e := range c.list.Values() {
				sum += e.bytes()
			}
			if n, bytes := c.size(); bytes != sum || sum > most || n != c.list.Len() {
				t.Fatalf("%d bytes counted of %d, want at most %d", bytes, sum, most)
			}
		}
	})
}

func TestLeastRecentlyUsedIsForgotten(t *testing.T) {
	c := newCache(3 * entryBytes)
	for key := range uint64(3) {
		c.put(key+1, &entry{})
	}
	c.get(1)
	c.put(4, &entry{})
	if c.get(1) == nil || c.get(2) != nil || c.get(3) == nil || c.get(4) == nil {
		t.Error("another than the least recently used was forgotten")
	}
}

// BenchmarkTokensFromCache is what a known prompt costs.
func BenchmarkTokensFromCache(b *testing.B) {
	s, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r := chat(1)
	s.cache.put(1, &entry{tokens: make([]uint32, 8000)})
	b.ReportAllocs()
	for b.Loop() {
		if _, f := s.Tokens(b.Context(), r); f != nil {
			b.Fatal(f)
		}
	}
}
