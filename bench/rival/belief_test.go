package rival

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A belief agrees with a plain one that keeps a slice of names for each backend.
func TestBeliefAgreesWithAPlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := retention{
			units:     rapid.IntRange(0, 12).Draw(t, "units"),
			ttl:       time.Duration(rapid.IntRange(0, 5).Draw(t, "ttl")),
			tailFirst: rapid.Bool().Draw(t, "tail first"),
		}
		backends := rapid.SampledFrom([]int{1, 3, 12, 70}).Draw(t, "backends")
		b, p := newBelief(backends, keep), newPlain(backends, keep)
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			now := time.Duration(step)
			backend := rapid.IntRange(0, backends-1).Draw(t, "backend")
			family := uint64(rapid.IntRange(1, 3).Draw(t, "family"))
			q := fork(family, 100+family, rapid.IntRange(0, 6).Draw(t, "shared"), rapid.IntRange(0, 8).Draw(t, "units"))
			b.age(now)
			p.age(now)
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				b.forget(backend)
				p.held[backend] = nil
			} else {
				b.look(q.Names)
				b.learn(q.Names, backend, now)
				p.learn(q.Names, backend, now)
			}
			p.compare(t, b, q.Names)
		}
	})
}

type plain struct {
	retention
	held [][]plainEntry // oldest first
}

type plainEntry struct {
	name uint64
	at   time.Duration
}

func newPlain(backends int, keep retention) *plain {
	return &plain{keep, make([][]plainEntry, backends)}
}

func (p *plain) has(backend int, name uint64) bool {
	return slices.ContainsFunc(p.held[backend], func(e plainEntry) bool { return e.name == name })
}

func (p *plain) learn(names []uint64, backend int, now time.Duration) {
	names = slices.Clone(names)
	if p.tailFirst {
		slices.Reverse(names)
	}
	for _, name := range names {
		h := slices.DeleteFunc(p.held[backend], func(e plainEntry) bool { return e.name == name })
		p.held[backend] = append(h, plainEntry{name, now})
	}
	if over := len(p.held[backend]) - p.units; p.units > 0 && over > 0 {
		p.held[backend] = p.held[backend][over:]
	}
}

func (p *plain) age(now time.Duration) {
	for b := range p.held {
		if p.ttl > 0 {
			p.held[b] = slices.DeleteFunc(p.held[b], func(e plainEntry) bool { return now-e.at > p.ttl })
		}
	}
}

func (p *plain) compare(t *rapid.T, b *belief, names []uint64) {
	n, pairs := len(p.held), 0
	lead, count, deep := make([]int, n), make([]int, n), make([]int, n)
	known := 0
	for known < len(names) && slices.ContainsFunc(p.held, func(h []plainEntry) bool {
		return slices.ContainsFunc(h, func(e plainEntry) bool { return e.name == names[known] })
	}) {
		known++
	}
	for backend := range p.held {
		pairs += len(p.held[backend])
		for i, name := range names[:known] {
			if p.has(backend, name) {
				if lead[backend] == i {
					lead[backend]++
				}
				count[backend]++
				deep[backend] = i + 1
			}
		}
	}
	got := make([]int, n)
	for how, want := range map[string][]int{"leading": lead, "counted": count, "deepest": deep} {
		switch how {
		case "leading":
			b.leading(names, got)
		case "counted":
			b.counted(names, got)
		case "deepest":
			b.deepest(names, got)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s %v, want %v", how, got, want)
		}
	}
	if depth, holder := b.trunk(names); depth != known || known > 0 && !p.has(holder, names[known-1]) {
		t.Fatalf("trunk %d at %d, want depth %d", depth, holder, known)
	}
	if b.pairs != pairs || len(b.entries)-len(b.freeEntries) != pairs || len(b.nodes)-len(b.freeNodes) != b.byName.used {
		t.Fatalf("%d pairs in %d entries, want %d", b.pairs, len(b.entries)-len(b.freeEntries), pairs)
	}
}

func TestACommonBoundCountsUnits(t *testing.T) {
	b := newBelief(3, retention{units: 10, common: true})
	learn := func(q *Request, backend int) {
		b.look(q.Names)
		b.learn(q.Names, backend, 0)
	}
	learn(prompt(1, 6), 0)
	learn(prompt(1, 6), 2)
	learn(prompt(2, 6), 1)
	if b.byName.used != 10 {
		t.Errorf("%d units, want 10", b.byName.used)
	}
	got := make([]int, 3)
	if b.deepest(prompt(2, 6).Names, got); got[1] != 6 {
		t.Errorf("the newest prompt matches %v, want 6 at 1", got)
	}
}

// Whatever requests come and go, units in use are those of the requests there.
func TestActiveUnitsAreCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newActive(20)
		var live []*Request
		var entries [][]int32
		total := 0
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				total -= a.remove(entries[i])
				entries = slices.Delete(entries, i, i+1)
				live = slices.Delete(live, i, i+1)
			} else {
				q := fork(1, uint64(rapid.IntRange(2, 4).Draw(t, "own")), rapid.IntRange(0, 5).Draw(t, "shared"), 8)
				q.ID = uint64(rapid.IntRange(0, 19).Draw(t, "backend"))
				a.look(q.Names)
				list, fresh := a.add(q.Names, int(q.ID))
				entries = append(entries, list)
				total += fresh
				live = append(live, q)
			}
			used := make(map[[2]uint64]bool)
			for _, q := range live {
				for _, name := range q.Names {
					used[[2]uint64{q.ID, name}] = true
				}
			}
			if total != len(used) {
				t.Fatalf("%d units in use, want %d", total, len(used))
			}
		}
	})
}
