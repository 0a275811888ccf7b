package kvevent_test

import (
	"testing"

	"pgregory.net/rapid"

	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
)

// storedIn is a stored event of a group, dense or with holes.
func storedIn(group int, kind string, dense bool) *kvevent.Event {
	e := &kvevent.Event{Group: group, SpecKind: kind, Stored: kvindex.Stored{Hashes: []uint64{1}, Tokens: make([]uint32, 4), BlockSize: 4}}
	if !dense {
		e.Stored.Tokens = make([]uint32, 12)
	}
	return e
}

func removedIn(group int) *kvevent.Event {
	return &kvevent.Event{Kind: kvevent.Removed, Group: group, Hashes: []uint64{1}}
}

// step is an event and what is expected of it.
type step struct {
	event        *kvevent.Event
	apply, reset bool
}

func TestMainGroupIsFound(t *testing.T) {
	const full, sliding = "full_attention", "sliding_window"
	for _, row := range []struct {
		what  string
		steps []step
		main  int
	}{
		{"no groups at all", []step{{storedIn(-1, "", true), true, false}, {removedIn(-1), true, false}}, -1},
		{"no groups, but a kind", []step{{storedIn(-1, full, true), true, false}, {storedIn(-1, sliding, true), false, false}}, -1},
		{"the kind decides", []step{
			{storedIn(0, sliding, true), false, false},
			{storedIn(1, "mla_attention", true), true, false},
			{storedIn(2, "mamba", true), false, false},
			{removedIn(0), false, false},
			{removedIn(1), true, false},
			{removedIn(2), false, false},
		}, 1},
		{"of several with full attention, the lowest", []step{
			{storedIn(0, full, true), true, false},
			{storedIn(1, "sink_full_attention", true), false, false},
			{removedIn(1), false, false},
		}, 0},
		{"a lower one comes later", []step{
			{storedIn(3, full, true), true, false},
			{storedIn(1, full, true), true, true},
			{storedIn(3, full, true), false, false},
		}, 1},
		{"no kinds, one group", []step{{storedIn(0, "", true), true, false}, {removedIn(0), true, false}}, 0},
		{"no kinds, holes in another group", []step{
			{storedIn(0, "", true), true, false},
			{storedIn(1, "", false), false, false},
			{removedIn(1), false, false},
		}, 0},
		{"no kinds, holes in the first group", []step{
			{storedIn(0, "", false), false, false},
			{storedIn(1, "", true), true, false},
			{storedIn(0, "", true), false, false},
		}, 1},
		{"no kinds, the guess was wrong", []step{
			{storedIn(0, "", true), true, false},
			{storedIn(1, "", true), false, false},
			{storedIn(0, "", false), false, true},
			{storedIn(1, "", true), true, false},
		}, 1},
		{"the kind comes after the guess", []step{
			{storedIn(0, "", true), true, false},
			{storedIn(0, sliding, true), false, true},
			{storedIn(1, full, true), true, false},
		}, 1},
		{"the kind changes", []step{
			{storedIn(0, full, true), true, false},
			{storedIn(0, sliding, true), false, true},
			{removedIn(0), false, false},
		}, -1},
		{"holes in a group of full attention are the index's to judge", []step{
			{storedIn(0, full, false), true, false},
			{removedIn(0), true, false},
		}, 0},
		{"a removal before anything was stored", []step{{removedIn(0), false, false}}, -1},
		{"groups beyond the bound", []step{{storedIn(kvevent.MaxGroups, full, true), false, false}, {removedIn(1 << 30), false, false}}, -1},
		{"remote blocks", []step{{&kvevent.Event{Remote: true, Group: -1}, false, false}}, -1},
		{"a clearing", []step{{&kvevent.Event{Kind: kvevent.Cleared, Group: 7, Remote: true}, true, false}}, -1},
	} {
		var g kvevent.Groups
		for i, s := range row.steps {
			if apply, reset := g.Judge(s.event); apply != s.apply || reset != s.reset {
				t.Errorf("%s: step %d: apply %v, reset %v, want %v, %v", row.what, i, apply, reset, s.apply, s.reset)
			}
		}
		if g.Main() != row.main {
			t.Errorf("%s: the main group is %d, want %d", row.what, g.Main(), row.main)
		}
		if g.Forget(); g.Main() != -1 {
			t.Errorf("%s: a forgotten source has a main group", row.what)
		}
	}
}

// What is in the index must always be the main group's, and a source that keeps to
// its kinds settles.
func TestIndexHoldsOneGroupOnly(t *testing.T) {
	kinds := []string{"full_attention", "sliding_window", "mamba", ""}
	rapid.Check(t, func(t *rapid.T) {
		kindOf := rapid.SliceOfN(rapid.SampledFrom(kinds), 6, 6).Draw(t, "kinds")
		var g kvevent.Groups
		var indexed map[int]bool
		resets := 0
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			group := rapid.IntRange(0, 5).Draw(t, "group")
			e := storedIn(group, kindOf[group], rapid.Bool().Draw(t, "dense"))
			apply, reset := g.Judge(e)
			if reset {
				indexed, resets = nil, resets+1
			}
			if apply {
				if indexed == nil {
					indexed = map[int]bool{}
				}
				indexed[group] = true
			}
			if len(indexed) > 1 || (len(indexed) == 1 && !indexed[g.Main()]) {
				t.Fatalf("groups %v are indexed, the main one is %d", indexed, g.Main())
			}
		}
		if most := 2 * len(kindOf); resets > most {
			t.Fatalf("%d resets of %d groups, want %d at most", resets, len(kindOf), most)
		}
	})
}
