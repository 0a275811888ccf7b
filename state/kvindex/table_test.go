package kvindex

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// checkTable fails unless the entries lie in order, none before its home, with no
// empty place between home and entry, and the figures are right.
func checkTable(t failer, tab *table[uint64], want []moved[uint64]) {
	t.Helper()
	var got []moved[uint64]
	empty := uint64(0) // place after the last empty one
	for place := range uint64(len(tab.chunks)) << chunkBits {
		e := tab.at(place)
		hash := e.hash()
		if hash == 0 {
			empty = place + 1
			continue
		}
		home := tab.home(hash)
		if home > place || home < empty {
			t.Fatalf("place %d has the home %d, the last empty place is %d", place, home, int(empty)-1)
		}
		got = append(got, moved[uint64]{hash: hash, val: e.val})
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %d entries %x, want %d %x", len(got), got, len(want), want)
	}
	if tab.n != len(want) {
		t.Fatalf("n = %d, want %d", tab.n, len(want))
	}
	owned := 0
	for _, c := range tab.chunks {
		if c != tab.pool.void {
			owned++
		}
	}
	if owned != tab.owned || tab.chunks[len(tab.chunks)-1] != tab.pool.void {
		t.Fatalf("owned = %d, want %d; the last chunk must be void", tab.owned, owned)
	}
}

func TestShardsShareNoCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(shard{}); size%64 != 0 {
		t.Errorf("a shard has %d bytes, want a multiple of 64", size)
	}
}

func TestTableKeepsOrderWhileItGrowsAndShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &budget{limit: int64(rapid.IntRange(1, 12).Draw(t, "chunks")) * 4096}
		p := newPool[uint64](b)
		tab := newTable(p)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		hashes := rapid.SampledFrom([]uint64{40, 1 << 10, 1 << 63}).Draw(t, "hashes")
		hash := func() uint64 { return (r.Uint64N(hashes) + 1) * (1<<63/hashes*2 - 1) }
		var want []moved[uint64]
		for range rapid.IntRange(1, 12).Draw(t, "phases") {
			grow := rapid.Bool().Draw(t, "grow")
			for range rapid.IntRange(1, 900).Draw(t, "steps") {
				if grow == (r.IntN(8) != 0) {
					h := hash()
					if !tab.reserve() {
						continue
					}
					place, _ := tab.find(h)
					for tab.hashAt(place) == h {
						place++
					}
					v := r.Uint64()
					if !tab.insert(place, h, v) {
						continue
					}
					i, _ := slices.BinarySearchFunc(want, h, func(m moved[uint64], h uint64) int {
						if m.hash <= h {
							return -1
						}
						return 1
					})
					want = slices.Insert(want, i, moved[uint64]{hash: h, val: v})
				} else if len(want) > 0 {
					i := r.IntN(len(want))
					place, ok := tab.find(want[i].hash)
					if !ok {
						t.Fatalf("%x not found", want[i].hash)
					}
					for *tab.val(place) != want[i].val {
						place++
					}
					tab.remove(place)
					want = slices.Delete(want, i, i+1)
					tab.settle()
				}
			}
			checkTable(t, &tab, want)
			if b.used.Load() > b.limit {
				t.Fatalf("%d bytes of %d", b.used.Load(), b.limit)
			}
		}
		tab.discard()
		if n := b.used.Load(); n != int64(len(p.spare))*p.size() {
			t.Fatalf("%d bytes are left of an empty table", n)
		}
	})
}

// failer is what *testing.T and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestTableGivesMemoryBackAsItShrinks(t *testing.T) {
	b := &budget{limit: 1 << 30}
	p := newPool[uint64](b)
	tab := newTable(p)
	r := rand.New(rand.NewPCG(1, 2))
	var hashes []uint64
	for range 200_000 {
		h := r.Uint64() | 1
		tab.reserve()
		place, _ := tab.find(h)
		tab.insert(place, h, 1)
		hashes = append(hashes, h)
		if n := len(hashes); n > 20_000 && float64(b.used.Load()-14*p.size()) > 16/0.76*float64(n) {
			t.Fatalf("%d bytes for %d entries", b.used.Load(), n)
		}
	}
	for i, h := range hashes {
		place, _ := tab.find(h)
		tab.remove(place)
		tab.settle()
		if n := len(hashes) - i - 1; n > 20_000 && float64(b.used.Load()) > 36*float64(n) {
			t.Fatalf("%d bytes for %d entries", b.used.Load(), n)
		}
	}
	if n := b.used.Load(); n > 10*8192 {
		t.Fatalf("%d bytes are left", n)
	}
}
