package discovery

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/proxy/backend"
)

var errFake = errors.New("no answer")

// world is a book and a pool that does as it says, in the test's own time.
type world struct {
	book    *book
	pool    *fakePool
	now     time.Time
	foreign map[string]bool
}

func (w *world) turn() []step {
	pool := make(map[string]backend.Status)
	for _, s := range w.pool.Status() {
		pool[s.ID] = s
	}
	steps, _ := w.book.plan(w.now, pool)
	k := Keeper{pool: w.pool}
	for _, s := range steps {
		w.book.done(s, k.do(s), w.now)
	}
	return steps
}

// Whatever sources, operators and peers do, discovery touches only what it has added,
// and once all is quiet the pool is what the sources name.
func TestThePoolBecomesWhatTheSourcesName(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		w := &world{book: newBook(2, usualDrain), pool: newPool(), now: time.Unix(1e9, 0), foreign: map[string]bool{}}
		id := rapid.SampledFrom(ids)
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1, 2:
				var list []backend.Config
				for _, name := range rapid.SliceOfDistinct(id, rapid.ID).Draw(t, "set") {
					c := config(name)
					c.Draining = rapid.IntRange(0, 3).Draw(t, "drains") == 0
					c.Weight = float64(rapid.IntRange(1, 2).Draw(t, "weight"))
					list = append(list, c)
				}
				w.book.hear(rapid.IntRange(0, 1).Draw(t, "source"), list, w.now)
			case 3:
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "seconds")) * time.Second)
			case 4:
				w.pool.setActive(id.Draw(t, "busy"), int64(rapid.IntRange(0, 1).Draw(t, "active")))
			case 5:
				if name := id.Draw(t, "theirs"); w.pool.Add(config(name)) == nil {
					w.foreign[name] = true
				}
			case 6: // the operator removes a backend of his own
				if name := id.Draw(t, "removed"); w.foreign[name] {
					delete(w.foreign, name)
					w.pool.Remove(name)
				}
			}
			for _, s := range w.turn() {
				if w.foreign[s.config.ID] {
					t.Fatalf("%v %s, which is somebody else's", s.verb, s.config.ID)
				}
			}
		}
		w.rest(t)
	})
}

// rest lets time pass until nothing happens, and compares.
func (w *world) rest(t *rapid.T) {
	for range 200 {
		w.now = w.now.Add(time.Second)
		w.turn()
	}
	if steps := w.turn(); len(steps) > 0 {
		t.Fatalf("it never rests: %v", steps)
	}
	var want []string
	wanted, _ := w.book.wanted()
	for name, s := range wanted {
		present := slices.Contains(w.pool.ids(), name)
		if !s.config.Draining || w.foreign[name] || present {
			want = append(want, name)
		}
		if !present || w.foreign[name] {
			continue
		}
		if drained := w.pool.backends[name].Health == draining; drained != s.config.Draining {
			t.Fatalf("%s: drained %v, named as draining %v", name, drained, s.config.Draining)
		}
		if got := w.pool.configs[name].Weight; got != s.config.Weight {
			t.Fatalf("%s has the weight %v, want %v", name, got, s.config.Weight)
		}
	}
	for name := range w.foreign {
		want = append(want, name)
	}
	slices.Sort(want)
	if got := w.pool.ids(); fmt.Sprint(got) != fmt.Sprint(slices.Compact(want)) {
		t.Fatalf("the pool has %v, want %v", got, want)
	}
}
