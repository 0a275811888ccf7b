package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flat is a profile with round costs and tiny limits.
var flat = Profile{
	Name: "flat", PrefillStep: 10 * time.Millisecond, DecodeStep: 10 * time.Millisecond, PerPromptToken: time.Millisecond,
	PerKVToken: time.Microsecond, KVTokens: 64, BlockTokens: 4, MaxBatchedTokens: 16, MaxSeqs: 4,
}

func with(p Profile, change func(*Profile)) Profile {
	change(&p)
	return p
}

// drain runs an engine until it is idle.
func drain(e *Engine) []Event {
	var events []Event
	for {
		t, ok := e.Next()
		if !ok {
			return events
		}
		e.Advance(t, func(ev Event) { events = append(events, ev) })
	}
}

// chainOf names the n blocks of a prompt of its own.
func chainOf(prompt uint64, n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = prompt<<32 | uint64(i)
	}
	return list
}

func TestOneRequestTakesItsStepsCosts(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 7, Blocks: chainOf(1, 2), PromptTokens: 10, OutputTokens: 3})
	got := drain(e)
	// 10 ms + 10 tokens; then two decode steps with 11 and 12 tokens of context.
	want := []Event{
		{At: 20 * time.Millisecond, ID: 7, Kind: FirstToken, Tokens: 1},
		{At: 40*time.Millisecond + 23*time.Microsecond, ID: 7, Kind: Done, Tokens: 2},
	}
	if !slices.Equal(got, want) {
		t.Errorf("events %+v, want %+v", got, want)
	}
}

func TestTheLastBlockOfAnExactPromptIsComputedAgain(t *testing.T) {
	for _, c := range []struct{ tokens, hit int }{{8, 4}, {9, 8}, {4, 0}, {3, 0}} {
		e := New(flat)
		for id := range uint64(2) {
			e.Submit(0, Request{ID: id, Blocks: chainOf(1, c.tokens/4), PromptTokens: c.tokens, OutputTokens: 1})
			events := drain(e)
			want := c.hit * int(id)
			if got := events[0].CachedTokens; got != want {
				t.Errorf("%d tokens, time %d: %d cached, want %d", c.tokens, id+1, got, want)
			}
		}
	}
}

func TestAHitEndsAtTheFirstMissingBlock(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, Blocks: []uint64{10, 11, 12}, PromptTokens: 12, OutputTokens: 1})
	drain(e)
	if got := e.Cached([]uint64{10, 99, 12}); got != 1 {
		t.Errorf("%d leading blocks, want 1", got)
	}
}

func TestTheEndsOfChainsAreEvictedFirst(t *testing.T) {
	e := New(flat) // 16 blocks
	e.Submit(0, Request{ID: 1, Blocks: chainOf(1, 8), PromptTokens: 32, OutputTokens: 1})
	e.Submit(0, Request{ID: 2, Blocks: chainOf(2, 8), PromptTokens: 32, OutputTokens: 1})
	drain(e)
	first, second := e.Cached(chainOf(1, 8)), e.Cached(chainOf(2, 8))
	if first != 8 || second != 8 {
		t.Fatalf("cached %d and %d blocks, want 8 and 8", first, second)
	}
	e.Submit(time.Hour, Request{ID: 3, Blocks: chainOf(3, 3), PromptTokens: 12, OutputTokens: 1})
	drain(e)
	if first, second = e.Cached(chainOf(1, 8)), e.Cached(chainOf(2, 8)); first != 5 || second != 8 {
		t.Errorf("cached %d and %d blocks, want 5 (the older one's tail is gone) and 8", first, second)
	}
}

func TestARunningRequestKeepsItsBlocks(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, Blocks: chainOf(1, 8), PromptTokens: 32, OutputTokens: 20})
	e.Advance(60*time.Millisecond, func(Event) {})
	for id := range uint64(5) {
		e.Submit(60*time.Millisecond, Request{ID: 10 + id, Blocks: chainOf(10+id, 3), PromptTokens: 12, OutputTokens: 1})
	}
	e.Advance(200*time.Millisecond, func(Event) {})
	if got := e.Cached(chainOf(1, 8)); got != 8 || e.Running() == 0 {
		t.Errorf("%d of the running request's blocks are cached, want 8", got)
	}
}

func TestAnAnswersBlocksCanBeHit(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, Blocks: []uint64{1}, OutputBlocks: []uint64{2, 3}, PromptTokens: 6, OutputTokens: 7})
	drain(e)
	// 6 + 7 tokens, of which the last one's keys were never computed: three blocks.
	if got := e.Cached([]uint64{1, 2, 3}); got != 3 {
		t.Errorf("%d blocks cached, want 3", got)
	}
	e.Submit(time.Hour, Request{ID: 2, Blocks: []uint64{1}, OutputBlocks: []uint64{5, 6}, PromptTokens: 6, OutputTokens: 6})
	drain(e)
	if got := e.Cached([]uint64{1, 5, 6}); got != 2 {
		t.Errorf("%d blocks cached of an answer that ends with a block, want 2", got)
	}
}

func TestTheQueueIsFirstComeFirstServed(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, PromptTokens: 40, OutputTokens: 8})
	e.Submit(0, Request{ID: 2, PromptTokens: 40, OutputTokens: 1}) // does not fit beside the first
	e.Submit(0, Request{ID: 3, PromptTokens: 4, OutputTokens: 1})  // would
	var order []uint64
	for _, ev := range drain(e) {
		if ev.Kind == FirstToken {
			order = append(order, ev.ID)
		}
	}
	if !slices.Equal(order, []uint64{1, 2, 3}) {
		t.Errorf("first tokens in order %v, want 1 2 3", order)
	}
}

func TestALongPromptIsComputedInChunksBesideDecode(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, PromptTokens: 8, OutputTokens: 10})
	e.Advance(18*time.Millisecond, func(Event) {})
	e.Submit(18*time.Millisecond, Request{ID: 2, PromptTokens: 32, OutputTokens: 1})
	drain(e)
	if got := e.Stats(); got.Steps != 10 || got.PrefillTokens != 40 {
		t.Errorf("%d steps with %d prompt tokens, want 10 with 40", got.Steps, got.PrefillTokens)
	}
}

func TestCancelFreesAtTheEndOfTheStep(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, PromptTokens: 8, OutputTokens: 50})
	e.Submit(0, Request{ID: 2, PromptTokens: 60, OutputTokens: 1})
	e.Advance(100*time.Millisecond, func(Event) {})
	e.Cancel(1)
	next, _ := e.Next()
	if next > 111*time.Millisecond {
		t.Errorf("the cancelled request runs until %v", next)
	}
	var ids []uint64
	for _, ev := range drain(e) {
		ids = append(ids, ev.ID)
	}
	if slices.Contains(ids, 1) || !slices.Contains(ids, 2) {
		t.Errorf("events of %v, want only of 2", ids)
	}
}

func TestWhatCanNeverFitIsRejected(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, PromptTokens: 60, OutputTokens: 5})
	if got := drain(e); len(got) != 1 || got[0].Kind != Rejected {
		t.Errorf("events %+v, want one rejection", got)
	}
}

func TestPreemptionComputesAgainAndLosesNothing(t *testing.T) {
	e := New(flat)
	for id := range uint64(3) {
		e.Submit(0, Request{ID: id, Blocks: chainOf(id, 4), PromptTokens: 16, OutputTokens: 40})
	}
	done := map[uint64]int{}
	for _, ev := range drain(e) {
		done[ev.ID] += ev.Tokens
	}
	if e.Stats().Preemptions == 0 {
		t.Error("nothing was preempted, though the answers need more blocks than there are")
	}
	for id, n := range done {
		if n != 40 {
			t.Errorf("request %d: %d tokens, want 40", id, n)
		}
	}
	checkIdle(t, e)
}

func TestClearForgetsTheCache(t *testing.T) {
	e := New(flat)
	e.Submit(0, Request{ID: 1, Blocks: chainOf(1, 3), PromptTokens: 13, OutputTokens: 5})
	e.Advance(40*time.Millisecond, func(Event) {})
	e.Clear()
	if e.Cached(chainOf(1, 3)) != 0 || e.CachedBlocks() != 0 {
		t.Error("blocks are still found")
	}
	drain(e)
	checkIdle(t, e)
}

// checkIdle checks that an idle engine holds nothing and that every block is accounted for once.
func checkIdle(t interface{ Errorf(string, ...any) }, e *Engine) {
	p := e.pool
	if len(e.live) != 0 || len(e.running) != 0 || e.Waiting() != 0 || p.held != 0 {
		t.Errorf("idle engine: %d live, %d running, %d waiting, %d blocks held", len(e.live), e.Running(), e.Waiting(), p.held)
	}
	checkPool(t, p)
}

func checkPool(t interface{ Errorf(string, ...any) }, p *pool) {
	spare, lru, held := 0, 0, 0
	for i := p.spare; i != none; i = p.blocks[i].next {
		spare++
	}
	for i := p.oldest; i != none; i = p.blocks[i].next {
		lru++
		b := p.blocks[i]
		if at, ok := p.byHash.get(b.hash); b.refs != 0 || !b.cached || !ok || at != i {
			t.Errorf("idle block %d: %+v", i, b)
		}
	}
	for _, b := range p.blocks {
		if b.refs > 0 {
			held++
		}
	}
	if lru != p.lru || held != p.held || spare+lru+held != len(p.blocks) || len(p.blocks) > p.size {
		t.Errorf("%d blocks of %d: %d spare, %d idle (%d counted), %d held (%d counted)",
			len(p.blocks), p.size, spare, lru, p.lru, held, p.held)
	}
}

// script is a random workload.
type script struct {
	profile Profile
	actions []action
}

type action struct {
	at     time.Duration
	r      Request
	cancel bool
}

func scripts(t *rapid.T) script {
	p := flat
	p.KVTokens = 4 * rapid.IntRange(6, 40).Draw(t, "blocks")
	p.MaxSeqs = rapid.IntRange(1, 6).Draw(t, "seqs")
	p.MaxBatchedTokens = rapid.IntRange(3, 40).Draw(t, "budget")
	p.Overhead = time.Duration(rapid.IntRange(0, 1).Draw(t, "overhead")) * 3 * time.Millisecond
	s := script{profile: p}
	at := time.Duration(0)
	for id := range uint64(rapid.IntRange(1, 25).Draw(t, "requests")) {
		at += time.Duration(rapid.SampledFrom([]int{0, 0, 1, 7, 20, 300}).Draw(t, "gap")) * time.Millisecond
		r := Request{ID: id, PromptTokens: rapid.IntRange(1, 40).Draw(t, "prompt"), OutputTokens: rapid.IntRange(1, 30).Draw(t, "out")}
		chain := chainOf(uint64(rapid.IntRange(1, 4).Draw(t, "family")), 20)
		n := r.PromptTokens / 4
		r.Blocks, r.OutputBlocks = chain[:n], chain[n:]
		s.actions = append(s.actions, action{at: at, r: r})
		if rapid.IntRange(0, 5).Draw(t, "cancel") == 0 {
			later := at + time.Duration(rapid.IntRange(0, 200).Draw(t, "patience"))*time.Millisecond
			s.actions = append(s.actions, action{at: later, r: r, cancel: true})
		}
	}
	slices.SortStableFunc(s.actions, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	return s
}

// play runs a script and returns the ends of all requests. each sees the engine after each action.
func (s script) play(setup func(*Engine), each func(*Engine)) ([]Event, *Engine) {
	e := New(s.profile)
	setup(e)
	var events []Event
	emit := func(ev Event) {
		if ev.Kind != Token {
			ev.Tokens = 0
			events = append(events, ev)
		}
	}
	for _, a := range s.actions {
		e.Advance(a.at, emit)
		if a.cancel {
			e.Cancel(a.r.ID)
		} else {
			e.Submit(a.at, a.r)
		}
		each(e)
	}
	for {
		t, ok := e.Next()
		if !ok {
			return events, e
		}
		e.Advance(t, emit)
		each(e)
	}
}

func TestBlocksNeverLeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scripts(t)
		events, e := s.play(func(*Engine) {}, func(e *Engine) {
			checkPool(t, e.pool)
			spent := 0
			for _, q := range e.running {
				spent += q.chunk
			}
			if spent > e.p.MaxBatchedTokens || e.Running() > e.p.MaxSeqs {
				t.Errorf("a step of %d tokens in %d requests", spent, e.Running())
			}
		})
		checkIdle(t, e)
		ends := 0
		for _, ev := range events {
			if ev.Kind == Done || ev.Kind == Rejected {
				ends++
			}
		}
		if submitted := len(slices.DeleteFunc(slices.Clone(s.actions), func(a action) bool { return a.cancel })); uint64(submitted) != uint64(ends)+e.Stats().Cancelled {
			t.Errorf("%d requests, %d ended, %d cancelled", submitted, ends, e.Stats().Cancelled)
		}
	})
}

// Skipping over decode steps, taking them one by one, and asking for each token must be the same engine.
func TestSkippingDecodeStepsChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scripts(t)
		nothing := func(*Engine) {}
		want, single := s.play(func(e *Engine) { e.maxRun = 1 }, nothing)
		for name, setup := range map[string]func(*Engine){
			"skipping": nothing, "each token": func(e *Engine) { e.ReportTokens(true) },
			"watched": func(e *Engine) { e.Watch(func(time.Duration, []Change) {}) },
		} {
			got, e := s.play(setup, nothing)
			if !slices.Equal(got, want) || e.stats != single.stats {
				t.Errorf("%s: %s\n%+v\nsingle steps: %s\n%+v", name, lines(got), e.stats, lines(want), single.stats)
			}
			if e.pool.byHash.count != single.pool.byHash.count || e.pool.lru != single.pool.lru {
				t.Errorf("%s: another cache than with single steps", name)
			}
		}
	})
}

func lines(events []Event) (s string) {
	for _, ev := range events {
		s += fmt.Sprintf("\n%+v", ev)
	}
	return s
}

func TestGaugesAreOfTheLastStepThatIsOver(t *testing.T) {
	p := Profile70B
	p.MaxSeqs, p.Overhead = 1, 0
	e := New(p)
	sees := func(when string, queued int, used bool) {
		t.Helper()
		if e.Queued() != queued || (e.KVUsage() > 0) != used {
			t.Errorf("%s: %d queued, usage %v; want %d, and some: %v", when, e.Queued(), e.KVUsage(), queued, used)
		}
	}
	for id := range uint64(3) {
		e.Submit(0, Request{ID: id, PromptTokens: 1000, OutputTokens: 2})
	}
	sees("before a step", 0, false)
	e.Advance(0, func(Event) {})
	sees("in the first step", 0, false)
	advance := func() {
		at, _ := e.Next()
		e.Advance(at, func(Event) {})
	}
	advance()
	sees("after it", 2, true)
	e.Submit(e.clock, Request{ID: 9, PromptTokens: 1000, OutputTokens: 2})
	sees("when another has come", 2, true)
	for e.Running()+e.Waiting() > 0 {
		advance()
	}
	sees("idle", 0, false)
}
