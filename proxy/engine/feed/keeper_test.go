package feed

import (
	"testing"

	"kvca/bench/kvencode"
)

func keep(t *testing.T, batches ...[]kvencode.Event) (*holder, *keeper) {
	t.Helper()
	sink := newHolder()
	k := &keeper{sink: sink, counts: &counts{}}
	for i, events := range batches {
		if o, err := k.apply(payload(events...)); o == damaged {
			t.Fatalf("batch %d: %v", i, err)
		}
	}
	return sink, k
}

func events(list ...kvencode.Event) []kvencode.Event { return list }

func with(e kvencode.Event, change func(*kvencode.Event)) kvencode.Event {
	change(&e)
	return e
}

func left(n ...int) func(*kvencode.Event) {
	return func(e *kvencode.Event) { e.Counts = n }
}

func group(n int, kind string) func(*kvencode.Event) {
	return func(e *kvencode.Event) { e.Group, e.SpecKind = n, kind }
}

func TestWhatEventsSayIsKept(t *testing.T) {
	for _, c := range []struct {
		name    string
		batches [][]kvencode.Event
		want    string
	}{
		{"stored and removed", [][]kvencode.Event{events(stored(1, 2, 3)), events(removed(2))}, "1@gpu 3@gpu"},
		{"removed before stored in one batch", [][]kvencode.Event{events(stored(1)), events(removed(1), stored(1))}, "1@gpu"},
		{"stored twice, removed once", [][]kvencode.Event{events(stored(1), stored(1), removed(1))}, "1@gpu"},
		{"stored twice, removed twice", [][]kvencode.Event{events(stored(1), stored(1), removed(1), removed(1))}, ""},
		{"many removed one by one, in two tiers", [][]kvencode.Event{events(
			stored(1, 2, 3), with(stored(1, 2), func(e *kvencode.Event) { e.Medium = "CPU" }), removed(1), removed(3),
			with(removed(2), func(e *kvencode.Event) { e.Medium = "CPU" }), removed(2), stored(4),
		)}, "1@cpu 4@gpu"},
		{"copies are left", [][]kvencode.Event{events(stored(1), with(removed(1), left(3)))}, "1@gpu"},
		{"no copies are left, however many were counted", [][]kvencode.Event{events(stored(1, 2), stored(1, 2), with(removed(1, 2), left(0, 1)))}, "2@gpu"},
		{"cleared", [][]kvencode.Event{events(stored(1), clearedEvent(), stored(2))}, "2@gpu"},
		{"another tier", [][]kvencode.Event{events(stored(1), with(stored(1), func(e *kvencode.Event) { e.Medium = "CPU" }), removed(1))}, "1@cpu"},
		{"elsewhere", [][]kvencode.Event{events(with(stored(1), func(e *kvencode.Event) { e.Remote = true }), stored(2))}, "2@gpu"},
		{"another group, and its removal", [][]kvencode.Event{events(
			with(stored(1, 2), group(0, "full_attention")), with(stored(1, 3), group(1, "sliding_window")), with(removed(1), group(1, "")),
		)}, "1@gpu 2@gpu"},
		{"the main group shows late", [][]kvencode.Event{events(
			with(stored(1, 2), group(0, "")), with(stored(3), group(1, "full_attention")),
		)}, "3@gpu"},
	} {
		sink, _ := keep(t, c.batches...)
		if got, _ := sink.holds(); got != c.want {
			t.Errorf("%s: holds %q, want %q", c.name, got, c.want)
		}
	}
}

func TestABatchIsTakenInWholeOrNotAtAll(t *testing.T) {
	whole := payload(stored(1), stored(2))
	for n := range len(whole) - 1 { // but for the rank at its end
		sink, k := keep(t)
		o, err := k.apply(whole[:n])
		if holds, _ := sink.holds(); o != damaged || err == nil || holds != "" {
			t.Fatalf("%d of %d bytes: outcome %d, error %v, holds %q; want damaged and nothing", n, len(whole), o, err, holds)
		}
	}
}

func TestOutcomesTellTheMachine(t *testing.T) {
	_, k := keep(t)
	for _, c := range []struct {
		payload []byte
		want    outcome
	}{
		{payload(stored(1)), taken},
		{payload(), taken},
		{payload(clearedEvent()), cleared},
		{payload(with(stored(1), group(3, ""))), taken},
		{payload(with(stored(1), group(4, "mla_attention"))), regrouped},
		{[]byte("garbage"), damaged},
		{nil, damaged},
	} {
		if got, _ := k.apply(c.payload); got != c.want {
			t.Errorf("payload %q: outcome %d, want %d", c.payload, got, c.want)
		}
	}
	if n := k.counts.events; n != 4 {
		t.Errorf("%d events, want 4", n)
	}
}
