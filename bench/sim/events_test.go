package sim

import (
	"context"
	"slices"
	"testing"

	"kvca/bench/engine"
	"kvca/bench/trace"
)

// With events the product knows what the engines hold, on any number of nodes, also
// after an engine or a node was away.
func TestEventsTellWhatEnginesHold(t *testing.T) {
	profile, err := engine.ProfileNamed("70b")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Open("../trace/testdata/agents_5.jsonl.gz", trace.Options{Seed: 1, Lanes: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, nodes := range []int{1, 3} {
		cfg := Config{Policy: "cost", Precise: true, Nodes: nodes, Backends: 2, Profile: profile, Seed: 1}
		s, err := newSimulation(cfg, tr)
		if err != nil {
			t.Fatal(err)
		}
		hearers := slices.Clone(s.events.hearers) // at the end they stop to hear
		if err := s.play(context.Background()); err != nil {
			t.Fatal(err)
		}
		if r := s.result(); r.Failed != 0 || !r.Precise || r.HitRate == 0 {
			t.Errorf("%d nodes: %+v", nodes, r)
		}
		for _, n := range hearers {
			held := 0
			for _, of := range s.events.held {
				held += len(of)
			}
			if got := n.heard.index.Stats().Entries; got != held || held == 0 {
				t.Errorf("%d nodes: one knows %d blocks, the engines hold %d", nodes, got, held)
			}
		}
		if len(hearers) != nodes {
			t.Errorf("%d nodes hear, want %d", len(hearers), nodes)
		}
	}
}

func TestPreciseIsForTheProductOnly(t *testing.T) {
	if err := (Config{Policy: "smg", Precise: true, Profile: engine.Profile8B}).Validate(); err == nil {
		t.Error("a rival that reads events passes")
	}
}
