package sim

import (
	"slices"
	"testing"

	"kvca/bench/trace"
	"kvca/state/chain"
)

func TestBlocksOfEverySizeNameTheSamePrefixes(t *testing.T) {
	a := names(1, 20)
	b := append(slices.Clone(a[:12]), names(2, 8)...)
	for size, want := range map[int]struct{ blocks, shared int }{
		64: {160, 96}, 128: {80, 48}, 256: {40, 24}, 512: {20, 12}, 1024: {10, 6}, 2048: {5, 3}, 4096: {2, 1}, 8 << 20: {0, 0},
	} {
		x, y := blocksOf(a, size), blocksOf(b, size)
		shared := 0
		for shared < len(x) && x[shared] == y[shared] {
			shared++
		}
		if len(x) != want.blocks || shared != want.shared {
			t.Errorf("%d bytes: %d blocks, %d shared, want %+v", size, len(x), shared, want)
		}
		if len(slices.Compact(slices.Sorted(slices.Values(x)))) != want.blocks { // x may be a itself
			t.Errorf("%d bytes: a name stands twice", size)
		}
		if cap(blocksOf(a[:5], 512)) != 5 {
			t.Error("appending to a chain would write into the trace")
		}
	}
}

func TestMarksAreThoseThatTheProductSets(t *testing.T) {
	var marks []trace.Mark
	for i := range 12 {
		marks = append(marks, trace.Mark{Name: uint64(i), Tokens: 64 * (i + 1)})
	}
	// With blocks of 512 bytes every other mark is at a block's end.
	got := marksOf(marks, 512)
	if len(got) != 6 || got[0] != (chain.Mark{Bytes: 256, Hash: 0}) || got[5] != (chain.Mark{Bytes: 2816, Hash: 10}) {
		t.Errorf("%v", got)
	}
	if got = marksOf(marks, 4096); len(got) != maxMarks || got[7].Hash != 11 {
		t.Errorf("%v", got)
	}
}
