package rival

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestGatewaysKnowWhatTheyShare(t *testing.T) {
	for _, c := range []struct {
		sharing      Sharing
		match, loads int // known to the second gateway at once
		later        int // and its loads after the delay
	}{
		{Nothing, 0, 0, 0},
		{Map, 4, 0, 0},
		{MapAndLoads, 4, 0, 1},
	} {
		r := newRig(t, "dynamo", 1, gateways(2, c.sharing, time.Second))
		ask := func(gateway int) (match, requests int) {
			r.ask(&r.gateways[gateway], gateway, prompt(1, 4), r.now)
			return r.question.match[0], r.question.loads[0].requests
		}
		ticket := r.route(prompt(1, 4))
		if match, requests := ask(0); match != 4 || requests != 1 {
			t.Errorf("sharing %d: the first knows %d units, %d requests", c.sharing, match, requests)
		}
		if match, requests := ask(1); match != c.match || requests != c.loads {
			t.Errorf("sharing %d: the second knows %d units, %d requests", c.sharing, match, requests)
		}
		r.now = time.Second
		if _, requests := ask(1); requests != c.later {
			t.Errorf("sharing %d: the second knows %d requests later, want %d", c.sharing, requests, c.later)
		}
		ticket.End(r.now)
		if _, requests := ask(0); requests != 0 {
			t.Errorf("sharing %d: %d requests remain", c.sharing, requests)
		}
		if _, requests := ask(1); requests != c.later {
			t.Errorf("sharing %d: the second knows of the end at once", c.sharing)
		}
		r.now *= 2
		r.Tick(r.now)
		if _, requests := ask(1); requests != 0 {
			t.Errorf("sharing %d: the second has %d requests left", c.sharing, requests)
		}
	}
}

// Every rival gives back all that it books, and two runs of one seed are alike.
func TestEachRivalIsDeterministicAndKeepsItsBooks(t *testing.T) {
	for _, name := range Names() {
		for sharing := Nothing; sharing <= MapAndLoads; sharing++ {
			if a, b := play(t, name, sharing, 1), play(t, name, sharing, 1); !slices.Equal(a, b) {
				t.Errorf("%s: two runs of one seed differ", name)
			}
		}
	}
}

// play routes a random workload, with a backend that goes and comes back, and
// returns where everything went.
func play(t *testing.T, name string, sharing Sharing, seed uint64) (backends []int) {
	random := rand.New(rand.NewPCG(seed, 7))
	r := newRig(t, name, 12, gateways(3, sharing, 20*time.Millisecond))
	var open []*Ticket
	end := func(i int) {
		if random.IntN(4) > 0 {
			open[i].Begin(r.now)
		}
		open[i].End(r.now)
		open[i].End(r.now)
		open = slices.Delete(open, i, i+1)
	}
	for i := range 3000 {
		r.now += time.Duration(random.IntN(int(20 * time.Millisecond)))
		r.Tick(r.now)
		switch i {
		case 1000:
			r.Remove(5)
		case 2000:
			r.Restore(5)
		}
		q := fork(uint64(random.IntN(5)), 10+uint64(random.IntN(400)), random.IntN(6), random.IntN(12))
		q.PromptTokens += random.IntN(unit)
		ticket := r.Route(random.IntN(3), q, r.now)
		if i >= 1000 && i < 2000 && ticket.Backend == 5 {
			t.Fatalf("%s: request %d went to a backend that was removed", name, i)
		}
		backends = append(backends, ticket.Backend)
		open = append(open, ticket)
		if len(open) > 60 {
			end(random.IntN(len(open)))
		}
	}
	for len(open) > 0 {
		end(0)
	}
	r.books.deliver(r.now + time.Hour)
	for g := range r.gateways {
		r.books.view(g, r.question.loads)
		for b, l := range r.question.loads {
			if l != (load{}) {
				t.Fatalf("%s: gateway %d still books %+v for %d", name, g, l, b)
			}
		}
		if a := r.gateways[g].active; a != nil && a.byName.used > 0 {
			t.Fatalf("%s: %d units in use by nobody", name, a.byName.used)
		}
	}
	return backends
}

func TestNoBackendIsLeft(t *testing.T) {
	r := newRig(t, "smg", 1)
	r.Remove(0)
	ticket := r.route(prompt(1, 1))
	ticket.Begin(0)
	ticket.End(0)
	if ticket.Backend != -1 {
		t.Errorf("went to %d", ticket.Backend)
	}
}

func TestNewNamesAllFaults(t *testing.T) {
	if _, err := New("least-loaded", Config{}); err == nil {
		t.Error("an unknown name was taken")
	}
	_, err := New("smg", Config{Gateways: -1, Sharing: 3})
	want := "rival smg: engines: 0, must be 1 to 32767\ngateways: -1, must not be negative\n" +
		"unit tokens: 0, must be positive\nsharing: 3, must be 0 to 2\nrand: missing"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// A workload like that of a trace: conversations that grow, with a system prompt.
func benchmark(b *testing.B, name string, backends, requests, turns, units int) {
	for b.Loop() {
		r := rand.New(rand.NewPCG(1, 1))
		cfg := Config{UnitTokens: unit, Rand: r.Uint64}
		for range backends {
			cfg.Engines = append(cfg.Engines, &engine{held: map[uint64]bool{}})
		}
		f, err := New(name, cfg)
		if err != nil {
			b.Fatal(err)
		}
		var open []*Ticket
		for i := range requests {
			session, turn := uint64(i/turns), i%turns
			q := fork(1, 1000+session, 20, 20+units*(turn+1))
			now := time.Duration(i) * 3 * time.Millisecond
			f.Tick(now)
			open = append(open, f.Route(0, q, now))
			if len(open) > 20*backends {
				open[0].Begin(now)
				open[0].End(now)
				open = open[1:]
			}
		}
	}
}

func BenchmarkTwelveThousandLongRequests(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) { benchmark(b, name, 8, 12_000, 4, 200) })
	}
}

func BenchmarkManyEngines(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) { benchmark(b, name, 240, 144_000, 4, 10) })
	}
}
