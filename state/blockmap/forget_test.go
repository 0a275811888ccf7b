package blockmap

import (
	"errors"
	"slices"
	"testing"
	"time"

	"kvca/state"
)

func TestForgetDropsTheRestOfAChain(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 700)
	learn(m, 1, chain, 0)
	learn(m, 2, chain, 0)
	m.Forget(1, chain, 100)
	if w := walk(m, chain, 0); w.Matched(1) != 100 || w.Matched(2) != 700 {
		t.Errorf("matched %d and %d, want 100 and 700", w.Matched(1), w.Matched(2))
	}
	m.Forget(2, chain, 0)
	if w := walk(m, chain, 0); w.Divergence != 100 {
		t.Errorf("diverges at %d, want 100", w.Divergence)
	}
	m.Forget(3, chain, 0)
	m.Forget(1, chain, 9999)
	m.Forget(1, chain, -1)
	if s := m.Stats(); s.Locations != 0 || s.Blocks != 0 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}

// Forget may take a prefix away under a branch that stays. Then the backends
// that do hold the prefix must still be found.
func TestForgottenPrefixDoesNotHideItsOtherHolders(t *testing.T) {
	m := testMap(t, time.Minute)
	learn(m, 1, []uint64{1, 2}, 0)
	learn(m, 3, []uint64{1}, 0)
	m.Forget(1, []uint64{1, 9}, 0)
	if w := walk(m, []uint64{1, 2}, 0); w.Matched(3) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(3))
	}
	m.Forget(3, []uint64{1}, 0) // now 2 has no parent
	learn(m, 3, []uint64{1}, 0) // and this is another
	learn(m, 4, []uint64{1, 5}, 0)
	learn(m, 1, []uint64{1, 2}, 0)
	m.Forget(1, []uint64{1}, 0)
	m.Forget(4, []uint64{1}, 0)
	if w := walk(m, []uint64{1, 2}, 0); w.Matched(3) != 1 {
		t.Errorf("matched %d, want 1", w.Matched(3))
	}
	ensure(t, m)
}

func TestLongChainsAreLearnedAndForgottenWhole(t *testing.T) {
	m := testMap(t, time.Minute)
	chain := random(seeded(), 5000)
	if n := learn(m, 1, chain, 0); n != 5000 {
		t.Fatalf("added %d", n)
	}
	w := walk(m, append(slices.Clone(chain), 1), 0)
	if w.Divergence != 5000 || w.Matched(1) != 5000 || w.Fan[0] != 1 {
		t.Fatalf("diverges at %d", w.Divergence)
	}
	if err := eachEntry(m, func(i uint32, e *entry) error {
		if e.hash != chain[0] && m.parent(e) == 0 {
			return errors.New("a block has no parent")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	m.SetMirror(1, 3000)
	if w := walk(m, chain, 0); w.Matched(1) != 3000 {
		t.Fatalf("matched %d after shrinking, want 3000", w.Matched(1))
	}
	ensure(t, m)
}

func TestChainThatRepeatsABlockBreaksNothing(t *testing.T) {
	m := testMap(t, 10*tick)
	chain := []uint64{1, 1, 2, 1, 0, 2, 0}
	learn(m, 1, chain, 0)
	learn(m, 2, chain, 0)
	for _, extend := range []bool{true, false} {
		for s := range state.Slot(4) {
			merge(m, s, Run{Parent: 2, Hashes: chain, Idle: tick}, extend, 0)
			merge(m, s, Run{Parent: 1, Hashes: []uint64{2, 5, 5, 2}}, extend, 0)
			ensure(t, m)
		}
	}
	if !m.Expect(1, chain) {
		t.Fatal("not recorded")
	}
	if w := walk(m, chain, 0); w.Divergence != len(chain) || len(w.Replicas) != 4 || len(w.Holders()) != 4 {
		t.Errorf("got %+v", w)
	}
	ensure(t, m)
	m.Forget(1, chain, 2)
	m.Unexpect(1, chain)
	ensure(t, m)
	m.Vacuum(10*tick, 100)
	if s := m.Stats(); s.Bytes != 0 {
		t.Errorf("left are %+v", s)
	}
	ensure(t, m)
}
