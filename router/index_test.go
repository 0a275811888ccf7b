package router

import (
	"testing"

	"kvca/state/cbr"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

// indexed gives the rig's backends sources: what each holds of the prompt's tokens is
// in held, by tier; a nil map leaves it unheard.
func (g *rig) indexed(p *kvindex.Prompt, held []map[kvindex.Tier]int) *IndexAnswer {
	g.Helper()
	x, err := kvindex.New(kvindex.Config{Key: chain.Key{K0: 1, K1: 2}, MaxBytes: 1 << 20})
	if err != nil {
		g.Fatal(err)
	}
	for i, tiers := range held {
		b := g.members[i]
		b.SetPrecise(true)
		if tiers == nil {
			continue
		}
		s, err := x.Open(kvindex.Origin{Slot: b.Slot})
		if err != nil {
			g.Fatal(err)
		}
		s.SetLive(true)
		first := 0
		for _, t := range []kvindex.Tier{kvindex.GPU, kvindex.CPU, kvindex.SSD} {
			n := tiers[t]
			e := kvindex.Stored{Tokens: p.Tokens[16*first : 16*(first+n)], BlockSize: 16, Tier: t}
			for k := range n {
				e.Hashes = append(e.Hashes, uint64(first+k+1))
			}
			if e.Parent, e.HasParent = uint64(first), first > 0; n > 0 {
				if err := s.Store(&e); err != nil {
					g.Fatal(err)
				}
			}
			first += n
		}
	}
	a := &IndexAnswer{Held: new(kvindex.Result), Tokens: len(p.Tokens), Whole: true}
	x.Lookup(p, a.Held)
	return a
}

func promptOf(tokens int) *kvindex.Prompt {
	p := &kvindex.Prompt{}
	for i := range tokens {
		p.Tokens = append(p.Tokens, uint32(1000+i))
	}
	return p
}

func TestTheIndexOutweighsBelief(t *testing.T) {
	for _, policy := range []string{"cost", "weighted", "two-phase"} {
		g := newRig(t, 3, func(c *Config) { c.Policy = policy })
		req := request(cbr.FollowUp, text(1, 8192))
		req.Pin = g.members[0]
		g.serve(req) // now a is believed to hold it
		req.Pin = nil
		if at := g.serve(req); at != "a" {
			t.Fatalf("%s without the index: %s, want a, which is believed to hold it", policy, at)
		}
		req.Index = g.indexed(promptOf(2048), []map[kvindex.Tier]int{{}, {kvindex.GPU: 127}, nil})
		ticket := g.route(req)
		d := ticket.Decision
		if d.Backend != "b" || d.Reason != ReasonHit || d.BlockUnit != "tokens" || d.ChainBlocks != 128 || d.MatchedBlocks != 127 || d.PredictedTokens != 127*16 || d.Index != "whole" {
			t.Errorf("%s: %+v, want b with 127 of 128 blocks of tokens", policy, d)
		}
		if tokens, ok := ticket.Predicted(); !ok || tokens != 127*16 {
			t.Errorf("%s: predicted %d, %v", policy, tokens, ok)
		}
		ticket.Close()
	}
}

func TestABackendThatTheIndexDoesNotCoverIsBelievedIn(t *testing.T) {
	g := newRig(t, 2, nil)
	req := request(cbr.FollowUp, text(1, 8192))
	req.Pin = g.members[1]
	g.serve(req)
	req.Pin = nil
	req.Index = g.indexed(promptOf(2048), []map[kvindex.Tier]int{{kvindex.GPU: 3}})
	if at := g.serve(req); at != "b" {
		t.Errorf("went to %s, want b: the map says that it holds all, the index that a holds three blocks", at)
	}
	req.Unbelieved = true
	if at := g.serve(req); at != "a" {
		t.Errorf("went to %s, want a, where nothing is to be believed", at)
	}
}

func TestAFallbackIsSaidAndDecidedByTheMap(t *testing.T) {
	g := newRig(t, 2, nil)
	req := request(cbr.FollowUp, text(1, 8192))
	g.members[0].SetPrecise(true)
	req.Pin = g.members[0]
	g.serve(req)
	req.Pin, req.Fallback = nil, "deadline"
	ticket := g.route(req)
	defer ticket.Close()
	if d := ticket.Decision; d.Backend != "a" || d.Index != "fallback" || d.Fallback != "deadline" || d.BlockUnit != "cbr" {
		t.Errorf("%+v, want a by the map, with its reason", d)
	}
	if _, ok := ticket.Predicted(); ok {
		t.Error("a prediction where the index was not asked")
	}
}

func TestSlowerTiersCountForLess(t *testing.T) {
	g := newRig(t, 2, func(c *Config) { c.Cost.Move = 0 })
	req := request(cbr.FollowUp, text(1, 8192))
	req.Index = g.indexed(promptOf(2048), []map[kvindex.Tier]int{{kvindex.GPU: 20, kvindex.SSD: 100}, {kvindex.GPU: 80}})
	if at := g.serve(req); at != "b" {
		t.Errorf("went to %s, want b: 80 blocks on the GPU are more than 20 and 100 at 0.4", at)
	}
	req.Index = g.indexed(promptOf(2048), []map[kvindex.Tier]int{{kvindex.GPU: 20, kvindex.CPU: 100}, {kvindex.GPU: 80}})
	if at := g.serve(req); at != "a" {
		t.Errorf("went to %s, want a: 20 and 100 at 0.7 are more than 80", at)
	}
}

// Of an earlier turn's tokens it is known who holds them; the rest of the prompt is
// measured by the model's ratio.
func TestABeginningIsBetterThanNothing(t *testing.T) {
	g := newRig(t, 2, nil)
	req := request(cbr.FollowUp, text(1, 8192))
	req.Index = g.indexed(promptOf(1024), []map[kvindex.Tier]int{{}, {kvindex.GPU: 63}})
	req.Index.Whole = false
	ticket := g.route(req)
	defer ticket.Close()
	if d := ticket.Decision; d.Backend != "b" || d.Index != "beginning" || d.ChainBlocks != 128 || d.MatchedBlocks != 63 {
		t.Errorf("%+v, want b with 63 of about 128 blocks", d)
	}
	if _, ok := ticket.Predicted(); ok {
		t.Error("a prediction of a prompt that was not known whole")
	}
}

func TestWhatIsOnItsWayCountsBeforeTheEngineTells(t *testing.T) {
	g := newRig(t, 4, nil)
	index := g.indexed(promptOf(4096), []map[kvindex.Tier]int{{}, {}, {}, {}})
	first := request(cbr.Bootstrap, text(1, 16384))
	first.Index = index
	open := g.route(first)
	defer open.Close()
	next := request(cbr.FollowUp, text(1, 16384))
	next.Index = index
	if at := g.serve(next); at != open.Backend.ID {
		t.Errorf("the same prompt went to %s while %s computes it", at, open.Backend.ID)
	}
}

func TestExplainSaysWhereItKnowsFrom(t *testing.T) {
	g := newRig(t, 3, nil)
	req := request(cbr.FollowUp, text(1, 8192))
	req.Index = g.indexed(promptOf(2048), []map[kvindex.Tier]int{{kvindex.GPU: 9}, nil})
	d, err := g.Explain(req, g.members)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"index", "unheard", "map"} {
		if got := d.Candidates[i].Index; got != want {
			t.Errorf("candidate %d: %q, want %q", i, got, want)
		}
	}
	if d.Candidates[0].MatchedBlocks != 9 {
		t.Errorf("%+v", d.Candidates[0])
	}
}

// The weighted score is the sum that its documentation gives.
func TestWeightedScoreIsItsSum(t *testing.T) {
	g := newRig(t, 2, func(c *Config) { c.Policy = "weighted" })
	g.members[0].SetUsage(0.5, 1)
	req := request(cbr.FollowUp, text(1, 8192))
	req.Index = g.indexed(promptOf(2048), []map[kvindex.Tier]int{{kvindex.GPU: 64}, {}})
	d, err := g.Explain(req, g.members)
	if err != nil {
		t.Fatal(err)
	}
	// Idle: half the prompt at weight 0.5, all on the GPU at 0.3, half of the cache
	// free at 0.2; the other is idle and has all free.
	if a, b := -d.Candidates[0].Cost, -d.Candidates[1].Cost; a < 0.6499 || a > 0.6501 || b < 0.1999 || b > 0.2001 {
		t.Errorf("scores %v and %v, want 0.65 and 0.2", a, b)
	}
}

// Many at once part although each sees the same caches.
func TestWeightedRequestsAtOncePart(t *testing.T) {
	g := newRig(t, 4, func(c *Config) { c.Policy = "weighted" })
	at := make(map[string]int)
	for i := range 40 {
		ticket := g.route(request(cbr.Bootstrap, text(i, 2048)))
		defer ticket.Close()
		at[ticket.Backend.ID]++
	}
	for id, n := range at {
		if n < 9 || n > 11 {
			t.Errorf("%s has %d of 40, want about ten each: %v", id, n, at)
		}
	}
}
