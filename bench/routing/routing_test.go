package routing

import (
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryShapeIsTimedAndGivesItsLoadBack(t *testing.T) {
	f, err := New(Config{Backends: 10, Blocks: 6400, Chain: 64, Decisions: 200, Goroutines: 2, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if blocks, _ := f.Blocks(); blocks != 6400+16 {
		t.Errorf("%d blocks at the start", blocks)
	}
	for _, s := range Shapes {
		got, err := f.Measure(t.Context(), s, 0)
		if err != nil || got.Route.P50 <= 0 || got.Route.Max < got.Route.P99 || got.Route.P99 < got.Route.P50 {
			t.Errorf("%v: %+v, %v", s, got, err)
		}
		if f.Held() != 0 {
			t.Errorf("%v: %d reservations are left", s, f.Held())
		}
	}
	if _, evicted := f.Blocks(); evicted != 0 {
		t.Errorf("%d blocks were evicted", evicted)
	}
}

func TestFollowUpMeetsWhatItKnows(t *testing.T) {
	f, err := New(Config{Backends: 10, Blocks: 640, Chain: 64, Decisions: 1, Goroutines: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for s, want := range map[Shape]int{Cold: 0, FollowUp: 62, Hot: 16} {
		d, err := f.router.Explain(f.request(s, r), f.members)
		if err != nil || d.MatchedBlocks != want || d.ChainBlocks != 64 {
			t.Errorf("%v: %d of %d blocks matched (%v), want %d", s, d.MatchedBlocks, d.ChainBlocks, err, want)
		}
	}
}

func TestLatencyOf(t *testing.T) {
	d := make([]time.Duration, 101)
	for i := range d {
		d[len(d)-1-i] = time.Duration(i)
	}
	if got := latencyOf(d); got != (Latency{P50: 50, P99: 99, Max: 100}) {
		t.Errorf("%+v", got)
	}
}

func TestConfigFaultsComeTogether(t *testing.T) {
	if err := (Config{}).Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) < 3 {
		t.Errorf("faults %v", err)
	}
}
