package engine

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// told is one call of an engine's watcher.
type told struct {
	at      time.Duration
	changes []Change
}

// copyOf keeps changes beyond the call.
func copyOf(changes []Change) []Change {
	list := slices.Clone(changes)
	for i := range list {
		list[i].Hashes = slices.Clone(list[i].Hashes)
	}
	return list
}

func watched(e *Engine) *[]told {
	var list []told
	e.Watch(func(at time.Duration, changes []Change) { list = append(list, told{at, copyOf(changes)}) })
	return &list
}

// holding counts the blocks of each name, as one does who hears the changes.
type holding map[uint64]int

func (h holding) apply(t interface{ Errorf(string, ...any) }, changes []Change) {
	for _, c := range changes {
		for _, hash := range c.Hashes {
			switch c.Kind {
			case Stored:
				h[hash]++
			case Removed:
				if h[hash]--; h[hash] < 0 {
					t.Errorf("block %x is removed more often than it was stored", hash)
				}
				if h[hash] == 0 {
					delete(h, hash)
				}
			}
		}
		if c.Kind == Cleared {
			clear(h)
		}
	}
}

// contents counts what a pool has cached.
func contents(p *pool) holding {
	h := holding{}
	for i := range p.blocks {
		if p.blocks[i].cached {
			h[p.blocks[i].hash]++
		}
	}
	return h
}

// Whoever hears the changes knows the cache, but for the step that is running.
func TestChangesTellWhatIsCached(t *testing.T) {
	for _, copies := range []bool{false, true} {
		rapid.Check(t, func(rt *rapid.T) {
			s, known := scripts(rt), holding{}
			restarts := rapid.Bool().Draw(rt, "restarts")
			_, e := s.play(func(e *Engine) {
				if copies {
					e.KeepCopies()
				}
				e.Watch(func(_ time.Duration, changes []Change) {
					if len(changes) == 0 {
						rt.Errorf("a step without changes was told")
					}
					known.apply(rt, changes)
				})
			}, func(e *Engine) {
				if restarts && rapid.IntRange(0, 9).Draw(rt, "clear") == 0 {
					e.Clear()
				}
				if restarts && rapid.IntRange(0, 19).Draw(rt, "restart") == 0 {
					e.Restart()
					clear(known)
				}
				now := maps.Clone(known)
				now.apply(rt, e.journal.changes)
				if want := contents(e.pool); !maps.Equal(now, want) {
					rt.Errorf("told %v, cached %v", now, want)
				}
				if want := contents(e.pool); len(want) != e.CachedBlocks() {
					rt.Errorf("%d names are cached, %d can be found", len(want), e.CachedBlocks())
				}
			})
			if !restarts && len(e.journal.changes) > 0 {
				rt.Errorf("an idle engine has %d changes to tell", len(e.journal.changes))
			}
		})
	}
}

// A run's parent is the block before it in the prompt, and still there: a request holds its own blocks.
func TestARunFollowsItsParent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		known := holding{}
		scripts(rt).play(func(e *Engine) {
			e.KeepCopies()
			e.Watch(func(_ time.Duration, changes []Change) {
				for i, c := range changes {
					if c.Kind == Stored {
						if c.HasParent != (c.First > 0) {
							rt.Errorf("a run from block %d on has a parent: %v", c.First, c.HasParent)
						}
						if c.HasParent && (known[c.Parent] == 0 || c.Parent+1 != c.Hashes[0]) {
							rt.Errorf("the run %x follows %x, of which there are %d", c.Hashes, c.Parent, known[c.Parent])
						}
					}
					known.apply(rt, changes[i:i+1])
				}
			})
		}, func(*Engine) {})
	})
}

// However the steps are taken, the same is told at the same time.
func TestChangesAreToldWhenTheirStepEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := scripts(rt)
		hear := func(setup func(*Engine)) (list *[]told) {
			s.play(func(e *Engine) {
				setup(e)
				list = watched(e)
			}, func(*Engine) {})
			return list
		}
		want := *hear(func(e *Engine) { e.maxRun = 1 })
		for name, got := range map[string][]told{
			"skipping": *hear(func(*Engine) {}), "each token": *hear(func(e *Engine) { e.ReportTokens(true) }),
		} {
			if !slices.EqualFunc(got, want, sameTold) {
				rt.Errorf("%s: told %v, step by step %v", name, got, want)
			}
		}
	})
}

func sameTold(a, b told) bool {
	return a.at == b.at && slices.EqualFunc(a.changes, b.changes, func(c, d Change) bool {
		return c.Kind == d.Kind && slices.Equal(c.Hashes, d.Hashes) && c.Parent == d.Parent && c.First == d.First
	})
}

// replay has one request after the other run alone, and returns what each of them changed.
func replay(e *Engine, list ...Request) (batches [][]Change) {
	heard := watched(e)
	for i, r := range list {
		*heard = nil
		r.ID, r.OutputTokens = uint64(i), max(r.OutputTokens, 1)
		e.Submit(0, r)
		drain(e)
		var all []Change
		for _, one := range *heard {
			all = append(all, one.changes...)
		}
		batches = append(batches, all)
	}
	return batches
}

func prompt(name uint64, tokens, unit int) Request {
	return Request{Blocks: chainOf(name, tokens/unit), PromptTokens: tokens}
}

// The order of a real engine, as it was recorded: a prompt of exactly three blocks stores the third each time it comes, and the
// third is removed as often, all copies of it before the blocks that lead to it.
func TestARecomputedBlockIsStoredAndRemovedEachTime(t *testing.T) {
	p := with(flat, func(p *Profile) { p.BlockTokens, p.KVTokens, p.MaxBatchedTokens = 32, 23*32, 1024 })
	e := New(p)
	e.KeepCopies()
	list := []Request{prompt(1, 100, 32), prompt(1, 96, 32), prompt(1, 96, 32)}
	for i := range uint64(12) {
		list = append(list, prompt(10+i, 65, 32))
	}
	tail, fill0 := uint64(1<<32|2), uint64(10<<32)
	removed := map[int][]uint64{
		3 + 8: {tail}, 3 + 9: {tail, tail}, 3 + 10: {tail - 1, tail - 2}, 3 + 11: {fill0 + 1, fill0},
	}
	for i, got := range replay(e, list...) {
		var stored, gone []uint64
		for _, c := range got {
			if c.Kind == Removed {
				gone = append(gone, c.Hashes...)
				if len(stored) > 0 {
					t.Errorf("request %d: a block is removed after the stores of its step", i)
				}
			} else {
				stored = append(stored, c.Hashes...)
			}
		}
		want := list[i].Blocks
		if i == 1 || i == 2 {
			want = want[2:]
		}
		if !slices.Equal(stored, want) || !slices.Equal(gone, removed[i]) {
			t.Errorf("request %d: stored %x, want %x; removed %x, want %x", i, stored, want, gone, removed[i])
		}
	}
	if e.Stats().CachedTokens != 2*64 {
		t.Errorf("%d tokens hit, want two blocks twice", e.Stats().CachedTokens)
	}
}

func TestARepeatedPromptChangesNothing(t *testing.T) {
	got := replay(New(flat), prompt(1, 10, 4), prompt(1, 10, 4), prompt(1, 13, 4))
	if len(got[0]) != 1 || len(got[1]) != 0 {
		t.Errorf("changes %v, then %v; want one, then none", got[0], got[1])
	}
	if c := got[2]; len(c) != 1 || c[0].First != 2 || c[0].Parent != 1<<32|1 || len(c[0].Hashes) != 1 {
		t.Errorf("a prompt with one more block changes %+v", c)
	}
}

func TestAnAnswersBlocksAreToldAsTheyFill(t *testing.T) {
	e := New(flat)
	heard := watched(e)
	e.Submit(0, Request{ID: 1, Ref: "mine", Blocks: []uint64{1}, OutputBlocks: []uint64{2, 3}, PromptTokens: 6, OutputTokens: 7})
	drain(e)
	// 6 and 7 tokens in blocks of 4: the prompt's step fills one, the second token of the answer the next, the sixth the last.
	if len(*heard) != 3 {
		t.Fatalf("told %v, want three times", *heard)
	}
	for i, one := range *heard {
		c := one.changes[0]
		if len(one.changes) != 1 || c.First != i || !slices.Equal(c.Hashes, []uint64{uint64(i + 1)}) || c.Ref != "mine" ||
			c.HasParent != (i > 0) || c.Parent != uint64(i) {
			t.Errorf("told %+v", one.changes)
		}
	}
}

func TestAClearIsToldWithTheNextStep(t *testing.T) {
	e := New(flat)
	heard := watched(e)
	e.Submit(0, prompt(1, 8, 4))
	drain(e)
	*heard = nil
	e.Clear()
	e.Clear()
	e.Advance(time.Hour, func(Event) {})
	if len(*heard) > 0 {
		t.Fatal("an idle engine told of it")
	}
	e.Submit(time.Hour, Request{ID: 2, PromptTokens: 2})
	drain(e)
	if len(*heard) != 1 || len((*heard)[0].changes) != 2 || (*heard)[0].changes[1].Kind != Cleared {
		t.Errorf("told %+v, want both together", *heard)
	}
}

// What a request's prompt did not hit, it computes.
func TestWhatIsNotCachedIsComputed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := scripts(rt)
		s.actions = slices.DeleteFunc(s.actions, func(a action) bool { return a.cancel })
		for i := range s.actions {
			s.actions[i].r.Anew = rapid.IntRange(0, 3).Draw(rt, "anew") == 0
		}
		_, e := s.play(func(*Engine) {}, func(*Engine) {})
		if got := e.Stats(); got.Preemptions == 0 && got.PrefillTokens != got.PromptTokens-got.CachedTokens {
			rt.Errorf("%d prompt tokens, %d cached, %d computed", got.PromptTokens, got.CachedTokens, got.PrefillTokens)
		}
	})
}
