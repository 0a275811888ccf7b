package router

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"kvca/state/cbr"
)

// Where queues are alike, new conversations go where they push out least.
func TestNovelWorkGoesWhereThereIsRoom(t *testing.T) {
	g := newRig(t, 2, nil)
	full, roomy := g.members[0], g.members[1]
	g.SetCache(full, 1280, 16)
	g.SetCache(roomy, 1_000_000, 16)
	roomy.SetStanding(Unhealthy)
	for i := range 4 {
		g.serve(request(cbr.Bootstrap, text(i, 2100)))
	}
	roomy.SetStanding(Available)
	g.clock += pressureKept
	if _, isFull := g.blocks.Age(full.Slot, g.clock); !isFull {
		t.Fatal("the first backend's cache has room")
	}
	for i := range 20 {
		if at := g.serve(request(cbr.Bootstrap, text(50+i, 2100))); at != roomy.ID {
			t.Fatalf("conversation %d went to %s, whose cache is full", i, at)
		}
	}
}

// A queue that is worth leaving a prefix for while the others are idle is not
// when they are all as busy: work that was saved is what they lack.
func TestAPrefixIsWorthMoreWhereAllAreBusy(t *testing.T) {
	const backlog, lead, prompt = 1_000_000, 40_000, 8192
	leaves := func(everywhere int) bool {
		g := newRig(t, 2, func(c *Config) { c.ActiveBytes = 0 })
		req := request(cbr.Bootstrap, text(1, prompt))
		holder := g.serve(req)
		var open []*Ticket
		busy := func(b *Backend, bytes int) {
			req := request(cbr.Bootstrap, text(100+len(open), bytes))
			req.Pin = b
			open = append(open, g.route(req))
		}
		for _, b := range g.members {
			if everywhere > 0 {
				busy(b, everywhere)
			}
			if b.ID == holder {
				busy(b, lead)
			}
		}
		at := g.serve(req)
		for _, ticket := range open {
			ticket.Close()
		}
		return at != holder
	}
	if !leaves(0) {
		t.Errorf("%d bytes of prefix were kept behind a queue of %d, with the other backend idle", prompt, lead)
	}
	if leaves(backlog) {
		t.Errorf("%d bytes of prefix were computed again at a backlog of %d everywhere", prompt, backlog)
	}
}

// The longer a shared prefix, the more continuations pay for its copy.
func TestTheDiscountIsPerKiBOfSharedPrefix(t *testing.T) {
	for _, c := range []struct{ blocks, fan, half int }{{8, 5, 4}, {64, 33, 32}} {
		q := &question{req: &Request{Bytes: int64(c.blocks) * 512}, router: &Router{cfg: Config{BlockSize: 512}}}
		q.facts = []fact{{}}
		q.router.loads = LocalLoads(newRig(t, 1, nil).ledger, "here")
		for range c.blocks {
			q.walk.Fan = append(q.walk.Fan, uint32(c.fan))
		}
		var d discount
		d.prepare(q, DefaultCost())
		whole := DefaultCost().NovelFactor * float64(c.blocks) * 512
		if got := d.tail(0, 0); math.Abs(got-whole/2) > 1e-6 {
			t.Errorf("%d shared blocks with %d continuations more cost %v, want half of %v", c.blocks, c.half, got, whole)
		}
		if got := d.tail(levels, 0); math.Abs(got-whole) > 1e-6 {
			t.Errorf("under full pressure they cost %v, want %v", got, whole)
		}
	}
}

// Of two idle backends a new conversation goes to the faster one, and a follow-up to
// the one that holds it all the same.
func TestAnIdleFasterBackendIsPreferred(t *testing.T) {
	g := newRig(t, 2, nil)
	g.members[0].SetSpeed(0.5)
	for i := range 10 {
		if at := g.serve(request(cbr.Bootstrap, text(i, 2100))); at != g.members[1].ID {
			t.Fatalf("conversation %d went to the slower backend", i)
		}
	}
	g.members[1].SetStanding(Unhealthy)
	g.serve(request(cbr.Bootstrap, text(50, 2100)))
	g.members[1].SetStanding(Available)
	if at := g.serve(request(cbr.FollowUp, text(50, 2100), text(51, 300))); at != g.members[0].ID {
		t.Error("a follow-up left the slower backend, which holds it")
	}
}

// An engine whose cache is full of requests that run makes the next one wait.
func TestNewWorkAvoidsACacheFullOfRequests(t *testing.T) {
	g := newRig(t, 2, nil)
	crowded := g.members[0]
	req := request(cbr.Bootstrap, text(1, 2100))
	req.Pin = crowded
	var open []*Ticket
	for range 10 {
		open = append(open, g.route(req))
		open[len(open)-1].Begin()
	}
	crowded.SetUsage(0.95, 10) // room for nine
	g.members[1].SetBypass(9)  // as loaded otherwise
	for i := range 10 {
		if at := g.serve(request(cbr.Bootstrap, text(10+i, 2100))); at == crowded.ID {
			t.Fatalf("conversation %d went to the full one", i)
		}
	}
	crowded.SetUsage(0.3, 10)
	if room := crowded.room.Load(); room != 0 {
		t.Errorf("room for %d requests in a cache that is mostly free", room)
	}
	for _, ticket := range open {
		ticket.Close()
	}
}

func TestPressureFallsWithAge(t *testing.T) {
	last := levels + 1
	for _, age := range []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
		level := pressureLevel(age, DefaultCost().Pressure)
		if level >= last {
			t.Errorf("level %d at %v, not below %d", level, age, last)
		}
		last = level
	}
	if pressureLevel(0, time.Minute) != levels || last != 0 {
		t.Errorf("from %d to %d, want %d to 0", pressureLevel(0, time.Minute), last, levels)
	}
}

// Of backends that are alike the near one is chosen; a prefix there, or a queue here,
// outweighs the way.
func TestTheOwnZoneComesFirstWhereTheCostAllows(t *testing.T) {
	g := newRig(t, 2, nil)
	far, near := g.members[0], g.members[1]
	far.SetRemote(true)
	for i := range 10 {
		if at := g.serve(request(cbr.Bootstrap, text(i, 2100))); at != near.ID {
			t.Fatalf("conversation %d went to the other zone", i)
		}
	}
	near.SetStanding(Unhealthy)
	g.serve(request(cbr.Bootstrap, text(50, 4200)))
	near.SetStanding(Available)
	if at := g.serve(request(cbr.FollowUp, text(50, 4200), text(51, 300))); at != far.ID {
		t.Error("a follow-up left the backend of the other zone, which holds it")
	}
	near.SetBypass(20)
	if at := g.serve(request(cbr.Bootstrap, text(60, 2100))); at != far.ID {
		t.Error("a queue of 20 at home is dearer than the way")
	}
}

func TestZonesCountNothingWhereTheyAreSwitchedOff(t *testing.T) {
	g := newRig(t, 2, func(c *Config) { c.Cost.CrossZone = 0 })
	g.members[0].SetRemote(true)
	served := map[string]int{}
	for i := range 50 {
		served[g.serve(request(cbr.Bootstrap, text(i, 2100)))]++
	}
	if len(served) != 2 {
		t.Errorf("served by %v, want both", served)
	}
}

func TestAHotBackendKeepsToItsCacheLines(t *testing.T) {
	var b Backend
	if size := unsafe.Sizeof(b); size != 128 {
		t.Errorf("a backend takes %d bytes, want whole cache lines", size)
	}
	if end := unsafe.Offsetof(b.usage) + unsafe.Sizeof(b.usage); end > 64 {
		t.Errorf("what every decision reads ends at byte %d, want one line", end)
	}
}
