package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/state/cbr"
	"kvca/state/ledger"
)

func TestBootstrapRequestsSpreadOverTheLeastLoaded(t *testing.T) {
	for _, policy := range []string{"cost", "two-phase", "least-request", "round-robin", "weighted", "bounded-hash"} {
		t.Run(policy, func(t *testing.T) {
			g := newRig(t, 4, func(c *Config) { c.Policy = policy })
			var open []*Ticket
			seen := map[string]int{}
			for i := range 40 {
				ticket := g.route(request(cbr.Bootstrap, text(i, 2000)))
				open = append(open, ticket)
				seen[ticket.Backend.ID]++
			}
			least, most := 8, 12
			if policy == "bounded-hash" {
				least, most = 5, 13 // a quarter above the mean
			}
			for _, b := range g.members {
				if n := seen[b.ID]; n < least || n > most {
					t.Errorf("%s got %d of 40 requests at once: %v", b.ID, n, seen)
				}
			}
			for _, ticket := range open {
				ticket.Close()
			}
		})
	}
}

func TestFollowUpGoesToLeastLoadedReplica(t *testing.T) {
	g := newRig(t, 4, func(c *Config) { c.Policy = "two-phase" })
	prefix := text(1, 4096)
	for _, b := range g.members[1:3] { // two replicas
		g.blocks.Learn(b.Slot, g.blocks.Generation(b.Slot), request(cbr.Bootstrap, prefix).Chain, 0)
	}
	busy := g.route(request(cbr.FollowUp, prefix, text(2, 600)))
	next := g.route(request(cbr.FollowUp, prefix, text(3, 600)))
	defer busy.Close()
	defer next.Close()
	got := busy.Backend.ID + next.Backend.ID
	if got != "bc" && got != "cb" {
		t.Errorf("follow-ups went to %s, want one to each of the replicas b and c", got)
	}
	if next.Decision.MatchedBlocks != 8 || next.Decision.Reason != ReasonHit {
		t.Errorf("decision %+v", next.Decision)
	}
}

func TestFollowUpWithoutAKnownPrefixMayGoAnywhere(t *testing.T) {
	g := newRig(t, 4, func(c *Config) { c.Policy = "two-phase" })
	seen := map[string]bool{}
	for i := range 100 {
		ticket := g.route(request(cbr.FollowUp, text(i, 2000)))
		if ticket.Decision.Reason != ReasonMiss {
			t.Fatalf("reason %s", ticket.Decision.Reason)
		}
		seen[ticket.Backend.ID] = true
		ticket.Close()
	}
	if len(seen) != 4 {
		t.Errorf("only %v were chosen", seen)
	}
}

func TestOnlyEligibleBackendsAreChosen(t *testing.T) {
	for policy := range policies {
		t.Run(policy, func(t *testing.T) {
			g := newRig(t, 5, func(c *Config) { c.Policy = policy })
			for i, s := range []Standing{Starting, Unhealthy, Broken, Draining} {
				g.members[i].SetStanding(s)
			}
			for i := range 50 {
				if id := g.serve(request(cbr.FollowUp, text(i%3, 2000))); id != "e" {
					t.Fatalf("%s is %v and was chosen", id, g.members[id[0]-'a'].Standing())
				}
			}
		})
	}
}

func TestWithNoBackendLeftOneIsTriedAnyway(t *testing.T) {
	g := newRig(t, 3, nil)
	g.members[0].SetStanding(Unhealthy)
	g.members[1].SetStanding(Draining)
	g.members[2].SetStanding(Broken)
	req := request(cbr.Bootstrap, text(1, 2000))
	for range 2 {
		ticket := g.route(req)
		if ticket.Backend.ID == "b" || ticket.Decision.Reason != ReasonLastResort {
			t.Errorf("tried %s for %s", ticket.Backend.ID, ticket.Decision.Reason)
		}
		ticket.Close()
		req.Tried = append(req.Tried, ticket.Backend)
	}
	if _, err := g.Route(context.Background(), req, g.members); !errors.Is(err, ErrNoBackend) {
		t.Errorf("with all tried or draining: %v", err)
	}
}

func TestLearningWaitsForTheAnswer(t *testing.T) {
	g := newRig(t, 2, nil)
	failed := g.route(request(cbr.Bootstrap, text(1, 2000)))
	failed.Close()
	failed.Begin() // too late: the client is gone
	if n := g.blocks.Stats().Locations; n != 0 {
		t.Fatalf("%d locations were learned from a request that was never answered", n)
	}
	served := g.route(request(cbr.Bootstrap, text(1, 2000)))
	if load := g.ledger.Load(served.Backend.Slot); load != (ledger.Load{Novel: 2000, Active: 1}) {
		t.Errorf("routed: %+v", load)
	}
	served.Begin()
	served.Begin()
	if load := g.ledger.Load(served.Backend.Slot); load != (ledger.Load{Active: 1}) {
		t.Errorf("begun: %+v", load)
	}
	if n := g.blocks.Stats().Locations; n != 4 { // three blocks and the mark
		t.Errorf("%d locations", n)
	}
	served.Close()
	served.Close()
}

func TestRequestsThatSkipTheCacheTeachNothing(t *testing.T) {
	g := newRig(t, 2, nil)
	g.serve(request(cbr.Bootstrap, text(1, 2000)))
	before := g.blocks.Stats().Locations
	req := request(cbr.Bootstrap, text(1, 2000))
	req.SkipsCache = true
	ticket := g.route(req)
	if ticket.Decision.MatchedBlocks != 0 || g.ledger.Load(ticket.Backend.Slot).Novel != 2000 {
		t.Errorf("decision %+v, load %+v", ticket.Decision, g.ledger.Load(ticket.Backend.Slot))
	}
	ticket.Begin()
	ticket.Close()
	if now := g.blocks.Stats().Locations; now != before {
		t.Errorf("%d locations, %d before", now, before)
	}
}

// A burst with one prefix, routed before any answer, must not scatter: what is
// on its way counts.
func TestABurstStaysTogetherBeforeTheFirstAnswer(t *testing.T) {
	g := newRig(t, 8, nil)
	prefix := text(1, 60_000)
	var open []*Ticket
	at := map[string]int{}
	for i := range 3 {
		ticket := g.route(request(cbr.Bootstrap, prefix, text(10+i, 500)))
		open, at[ticket.Backend.ID] = append(open, ticket), at[ticket.Backend.ID]+1
	}
	for _, ticket := range open {
		ticket.Close()
	}
	if len(at) != 1 {
		t.Errorf("three requests with one 60 kB prefix went to %v", at)
	}
}

func TestAPrefixWhoseBackendIsBusyIsComputedElsewhere(t *testing.T) {
	g := newRig(t, 2, nil)
	prefix := text(1, 4096)
	holder := g.serve(request(cbr.Bootstrap, prefix))
	var open []*Ticket
	for i := range 2 { // two long prefills, one on each
		open = append(open, g.route(request(cbr.Bootstrap, text(50+i, 400_000))))
	}
	for _, ticket := range open {
		if ticket.Backend.ID != holder {
			ticket.Close()
		}
	}
	req := request(cbr.FollowUp, prefix, text(2, 100))
	ticket := g.route(req)
	if ticket.Backend.ID == holder || ticket.Decision.Reason != ReasonLoadOverride {
		t.Errorf("went to %s for %s; %s holds the prefix behind a 400 kB prefill", ticket.Backend.ID, ticket.Decision.Reason, holder)
	}
	ticket.Close()
	for _, ticket := range open {
		ticket.Close()
	}
}

func TestSpeedAndBypassCount(t *testing.T) {
	g := newRig(t, 2, nil)
	g.members[0].SetSpeed(3)
	var open []*Ticket
	at := map[string]int{}
	for i := range 40 {
		ticket := g.route(request(cbr.Bootstrap, text(i, 2000)))
		open, at[ticket.Backend.ID] = append(open, ticket), at[ticket.Backend.ID]+1
	}
	if at["a"] < 28 || at["a"] > 32 {
		t.Errorf("a backend three times as fast got %d of 40", at["a"])
	}
	for _, ticket := range open {
		ticket.Close()
	}
	g.members[0].SetSpeed(1)
	g.members[0].SetBypass(5)
	if id := g.serve(request(cbr.Bootstrap, text(99, 2000))); id != "b" {
		t.Errorf("went to %s, which runs five requests of somebody else", id)
	}
}

func TestExplainHasNoSideEffects(t *testing.T) {
	g := newRig(t, 3, nil)
	holder := g.serve(request(cbr.Bootstrap, text(1, 4096)))
	g.members[0].SetStanding(Draining)
	if holder == "a" {
		g.members[0].SetStanding(Available)
		g.members[1].SetStanding(Draining)
	}
	before := g.blocks.Stats()
	req := request(cbr.FollowUp, text(1, 4096), text(2, 1000))
	var last Decision
	for range 20 {
		d, err := g.Explain(req, g.members)
		if err != nil {
			t.Fatal(err)
		}
		last = d
	}
	if last.Backend != holder || last.MatchedBlocks != 8 || len(last.Candidates) != 3 {
		t.Errorf("decision %+v", last)
	}
	for _, c := range last.Candidates {
		want := map[string]string{holder: "chosen"}[c.Backend]
		if want == "" && !c.Eligible {
			want = "draining"
		} else if want == "" {
			want = "costs more"
		}
		if c.Why != want {
			t.Errorf("%s: %q, want %q", c.Backend, c.Why, want)
		}
	}
	if g.blocks.Stats() != before || g.ledger.Held() != 0 || g.ledger.Counters().Granted != 1 {
		t.Errorf("explaining changed something: %+v, %+v", g.blocks.Stats(), g.ledger.Counters())
	}
}

func TestARemovedBackendLeavesNothingToItsSlot(t *testing.T) {
	g := newRig(t, 1, nil)
	old := g.members[0]
	req := request(cbr.Bootstrap, text(1, 4096))
	ticket := g.route(req)
	ticket.Begin()
	g.Remove(old)
	next, err := g.Add("next")
	if err != nil {
		t.Fatal(err)
	}
	if next.Slot != old.Slot {
		t.Fatalf("slot %d, want the free one, %d", next.Slot, old.Slot)
	}
	next.SetStanding(Available)
	g.members = []*Backend{next}
	ticket.Close()
	d, err := g.Explain(req, g.members)
	if err != nil || d.MatchedBlocks != 0 || g.ledger.Load(next.Slot) != (ledger.Load{}) {
		t.Errorf("the new backend inherited: %+v, %+v, %v", d, g.ledger.Load(next.Slot), err)
	}
}

func TestTheMirrorFollowsTheCacheAndTheRatio(t *testing.T) {
	g := newRig(t, 1, nil)
	g.SetCache(g.members[0], 1280, 16) // 1280 * 0.95 * 4 / 512 = 9 blocks
	for i := range 20 {
		g.serve(request(cbr.Bootstrap, text(i, 2100)))
	}
	if n := g.blocks.Held(g.members[0].Slot); n != 9 {
		t.Errorf("%d locations in a mirror of 9", n)
	}
	ticket := g.route(request(cbr.Bootstrap, text(99, 2100)))
	ticket.Begin()
	ticket.Observe(1050, 0) // two bytes a token: half as many blocks
	ticket.Close()
	if n := g.blocks.Held(g.members[0].Slot); n != 4 {
		t.Errorf("%d locations after the ratio halved, want 4", n)
	}
}

func TestPoliciesPerModel(t *testing.T) {
	g := newRig(t, 2, func(c *Config) { c.Policies = map[string]string{"m": "round-robin"} })
	one, two := g.serve(request(cbr.Bootstrap, text(1, 600))), g.serve(request(cbr.Bootstrap, text(1, 600)))
	if one == two {
		t.Errorf("round-robin took %s twice", one)
	}
	if g.PolicyOf("other") != "cost" {
		t.Errorf("the other model has %s", g.PolicyOf("other"))
	}
}

func TestTheGuardLetsLoadDecide(t *testing.T) {
	for _, policy := range []string{"two-phase", "weighted"} {
		g := newRig(t, 2, func(c *Config) { c.Policy, c.Guard = policy, Guard{Absolute: 4, Relative: 1.5} })
		holder := g.serve(request(cbr.Bootstrap, text(1, 4096)))
		var open []*Ticket
		for i := range 30 {
			open = append(open, g.route(request(cbr.FollowUp, text(1, 4096), text(2, i))))
		}
		at := map[string]int{}
		for _, ticket := range open {
			at[ticket.Backend.ID]++
			ticket.Close()
		}
		if at[holder] < 15 || at[holder] == 30 {
			t.Errorf("%s: the holder took %d of 30, want most and not all", policy, at[holder])
		}
	}
}

func TestConfigurationFaultsAreToldAllAtOnce(t *testing.T) {
	c := DefaultConfig()
	c.BlockSize, c.Policy, c.Policies = 12, "best", map[string]string{"m": "worst"}
	err := c.Validate()
	for _, want := range []string{"12", `"best"`, `"worst"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// Forty requests at once over eight idle backends: five each, whoever asks.
func TestChoosingIsIndivisible(t *testing.T) {
	g := newRig(t, 8, func(c *Config) { c.Rand = locked(c.Rand) })
	tickets := make([]*Ticket, 40)
	var wg sync.WaitGroup
	for i := range tickets {
		wg.Go(func() { tickets[i] = g.route(request(cbr.Bootstrap, text(i, 2000))) })
	}
	wg.Wait()
	at := map[string]int{}
	for _, ticket := range tickets {
		at[ticket.Backend.ID]++
		ticket.Close()
	}
	for _, b := range g.members {
		if at[b.ID] != 5 {
			t.Errorf("%v: want five each", at)
			break
		}
	}
}

func locked(f func() uint64) func() uint64 {
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return f()
	}
}

func TestRunVacuumsUntilItsContextEnds(t *testing.T) {
	g := newRig(t, 1, func(c *Config) { c.Now = func() time.Duration { return time.Hour } })
	g.blocks.Learn(0, g.blocks.Generation(0), []uint64{1, 2, 3}, 0)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { g.Run(ctx); close(done) }()
	for end := time.Now().Add(10 * time.Second); g.blocks.Stats().Locations > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("expired locations stay")
		}
	}
	cancel()
	<-done
}

func BenchmarkRoute(b *testing.B) {
	for _, backends := range []int{8, 1000, 4000} {
		for _, hot := range []bool{false, true} {
			b.Run(fmt.Sprintf("backends=%d/hot=%v", backends, hot), func(b *testing.B) {
				g := newBench(b, backends)
				prefix := text(1, 32<<10)
				if hot { // every backend holds the prefix
					chain := request(cbr.Bootstrap, prefix).Chain
					for _, m := range g.members {
						g.blocks.Learn(m.Slot, g.blocks.Generation(m.Slot), chain, 0)
					}
				}
				req := request(cbr.FollowUp, prefix, text(2, 300))
				b.ReportAllocs()
				for b.Loop() {
					t, err := g.Route(context.Background(), req, g.members)
					if err != nil {
						b.Fatal(err)
					}
					t.Begin()
					t.Close()
				}
			})
		}
	}
}

// Nobody tells how large the cache is; what the engine reports of prompts does.
func TestTheMirrorLearnsTheSizeOfACache(t *testing.T) {
	const cacheBlocks = 400
	g := newRig(t, 1, nil)
	slot := g.members[0].Slot
	engine := newLRU(cacheBlocks)
	prompts := make([]*Request, 80)
	for i := range prompts {
		prompts[i] = request(cbr.Bootstrap, text(i, 512*10))
	}
	for range 12_000 {
		// Some prompts are asked for more often than others.
		req := prompts[int(g.random.ExpFloat64()*25)%len(prompts)]
		ticket := g.route(req)
		ticket.Begin()
		ticket.Observe(int64(req.Bytes/4), int64(engine.touch(req.Chain)*512/4))
		ticket.Close()
		g.clock += learnEvery
	}
	if held := g.blocks.Held(slot); held < cacheBlocks*3/4 || held > cacheBlocks*4/3 {
		t.Errorf("%d locations are believed in, of a cache of %d blocks", held, cacheBlocks)
	}
}

// Texts of many bytes a token and of few are no evidence against each other, and a
// mirror that an engine's lies have made small grows again.
func TestALearnedMirrorSurvivesMixedTextsAndLies(t *testing.T) {
	g := newRig(t, 1, nil)
	slot := g.members[0].Slot
	prompts := make([]*Request, 50)
	for i := range prompts {
		prompts[i] = request(cbr.Bootstrap, text(i, 512*20))
	}
	ask := func(i int, cached func(all int64) int64) {
		req := prompts[i%len(prompts)]
		tokens := req.Bytes * 10 / int64(25+20*(i%2)) // 2.5 or 4.5 bytes a token
		ticket := g.route(req)
		ticket.Begin()
		ticket.Observe(tokens, cached(tokens))
		ticket.Close()
		g.clock += learnEvery
	}
	all := func(n int64) int64 { return n }
	for i := range 5000 {
		ask(i, all)
	}
	if held := g.blocks.Held(slot); held < 50*20 {
		t.Errorf("%d of %d blocks are believed in of an endless cache", held, 50*20)
	}
	for i := range 2000 {
		ask(i%2, func(int64) int64 { return 0 })
	}
	small := g.blocks.Held(slot)
	for i := range 20_000 {
		ask(i, all)
	}
	if held := g.blocks.Held(slot); held < 50*20 {
		t.Errorf("%d of %d blocks are believed in long after an engine that said nothing was cached; %d then", held, 50*20, small)
	}
}

// lru is an engine's cache in whole prompts, the least recently used out first.
type lru struct {
	blocks int
	order  [][]uint64
}

func newLRU(blocks int) *lru { return &lru{blocks: blocks} }

// touch is how many blocks of a prompt were there; then they are.
func (c *lru) touch(prompt []uint64) (hits int) {
	i := slices.IndexFunc(c.order, func(p []uint64) bool { return p[0] == prompt[0] })
	if i >= 0 {
		hits = len(prompt)
		c.order = slices.Delete(c.order, i, i+1)
	}
	c.order = append(c.order, prompt)
	for len(c.order)*len(prompt) > c.blocks {
		c.order = c.order[1:]
	}
	return hits
}
