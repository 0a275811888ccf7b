package engine

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		want := map[uint64]int32{}
		// Few hashes, so that they meet; of both kinds, spread and not.
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, 99).Draw(t, "number") << rapid.SampledFrom([]int{0, 32, 56}).Draw(t, "shift")
		})
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			h := hash.Draw(t, "hash")
			_, there := want[h]
			switch {
			case rapid.IntRange(0, 99).Draw(t, "clear") == 0:
				table.clear()
				clear(want)
			case there:
				table.remove(h)
				delete(want, h)
			default:
				b := rapid.Int32Range(0, 1<<20).Draw(t, "block")
				table.put(h, b)
				want[h] = b
			}
			if table.count != len(want) {
				t.Fatalf("%d of %d", table.count, len(want))
			}
		}
		for h, b := range want {
			if got, ok := table.get(h); !ok || got != b {
				t.Fatalf("%x is %d, %v, want %d", h, got, ok, b)
			}
		}
		other := hash.Draw(t, "other")
		_, there := want[other]
		if _, ok := table.get(other); ok != there {
			t.Fatalf("%x is there: %v, want %v", other, ok, there)
		}
	})
}
