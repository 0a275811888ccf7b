package tenant

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// start is when the virtual time of these tests begins.
var start = time.Unix(1e9, 0)

func newEntry(tenant, pool string, class int, weight float64) *entry {
	return &entry{Waiter: Waiter{Tenant: tenant, Class: class, Weight: weight, Bytes: 1, Deadline: start.Add(time.Hour)}, pool: pool}
}

// arrive adds who waits from now on.
func (o *order) arrive(e *entry, now time.Time) (out []*entry, ok bool) {
	e.since = now
	return o.add(e)
}

// audit counts again what the order counts.
func (o *order) audit() error {
	waiting, bytes := 0, int64(0)
	var byClass [classes]int
	tenants := make(map[string]int)
	for pool, l := range o.lines {
		inLine := 0
		for c := range l.class {
			t := &l.class[c]
			for i, f := range t.busy {
				if f.index != i || f.first == nil || t.flows[f.tenant] != f || f.last.next != nil || f.first.prev != nil {
					return fmt.Errorf("flow of %s in class %d is torn", f.tenant, c)
				}
				for e := f.first; e != nil; e = e.next {
					if e.pool != pool || e.Tenant != f.tenant || e.turns != t || e.flow != f || e.next != nil && (e.next.seq <= e.seq || e.next.prev != e) {
						return fmt.Errorf("entry %d is out of order", e.seq)
					}
					inLine++
					bytes += e.Bytes
					byClass[e.Class]++
					tenants[e.Tenant]++
				}
			}
			if idle := len(t.flows) - len(t.busy); idle < 0 || idle > maxIdle {
				return fmt.Errorf("%d idle flows", idle)
			}
		}
		if inLine != l.waiting || inLine == 0 {
			return fmt.Errorf("pool %s: %d wait, counted %d", pool, inLine, l.waiting)
		}
		waiting += inLine
	}
	told := make(map[string]int)
	for tenant, n := range o.tenants {
		told[tenant] = *n
	}
	if waiting != o.waiting || bytes != o.bytes || byClass != o.byClass || !maps.Equal(tenants, told) {
		return fmt.Errorf("counted %d, %d bytes, %v, %v; the order says %d, %d, %v, %v", waiting, bytes, byClass, tenants, o.waiting, o.bytes, o.byClass, told)
	}
	if waiting > o.maxWaiting || bytes > o.maxBytes {
		return fmt.Errorf("%d waiters, %d bytes: beyond the bounds", waiting, bytes)
	}
	return nil
}

// scene drives an order with arbitrary calls beside a list of who waits.
type scene struct {
	o       *order
	now     time.Time
	waiting []*entry
}

func (s *scene) forget(gone ...*entry) {
	s.waiting = slices.DeleteFunc(s.waiting, func(e *entry) bool { return slices.Contains(gone, e) })
}

// class is what an entry counts as.
func (s *scene) class(e *entry) int {
	if s.now.Sub(e.since) >= s.o.aging {
		return 0
	}
	return e.Class
}

func (s *scene) arrive(t *rapid.T) {
	e := newEntry(
		rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "tenant"), rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pool"),
		rapid.IntRange(0, 9).Draw(t, "class"), rapid.SampledFrom([]float64{0.01, 0.5, 1, 3, 1000}).Draw(t, "weight"))
	e.Bytes = rapid.SampledFrom([]int64{0, 1, 40, 101}).Draw(t, "bytes")
	e.Deadline = s.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(t, "patience")) * time.Second)
	before := fmt.Sprint(s.o.waiting, s.o.bytes, s.o.byClass)
	out, ok := s.o.arrive(e, s.now)
	if !ok {
		if after := fmt.Sprint(s.o.waiting, s.o.bytes, s.o.byClass); len(out) > 0 || after != before {
			t.Fatalf("refused, yet %v became %v", before, after)
		}
		return
	}
	s.waiting = append(s.waiting, e)
	if slices.Contains(out, e) || len(out) > maxGiveWay {
		t.Fatalf("%d gave way", len(out))
	}
	for _, v := range out {
		if !slices.Contains(s.waiting, v) {
			t.Fatal("one gave way who did not wait")
		}
	}
	s.forget(out...)
}

// takeNext checks the rules of who is next.
func (s *scene) takeNext(t *rapid.T) {
	pool := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pool")
	e := s.o.first(pool, s.now)
	for _, w := range s.waiting {
		if w.pool != pool {
			continue
		}
		switch {
		case e == nil:
			t.Fatal("someone waits, nobody is next")
		case s.class(w) < s.class(e):
			t.Fatalf("class %d is next while %d waits", s.class(e), s.class(w))
		case w.Tenant == e.Tenant && s.class(w) == s.class(e) && w.seq < e.seq:
			t.Fatalf("%d of %s is next before %d", e.seq, e.Tenant, w.seq)
		}
	}
	if e == nil {
		return
	}
	if !slices.Contains(s.waiting, e) || e.pool != pool {
		t.Fatal("one is next who does not wait there")
	}
	if !s.o.take(e, s.now) || s.o.take(e, s.now) || s.o.drop(e) {
		t.Fatal("want one turn each")
	}
	s.forget(e)
}

func (s *scene) leave(t *rapid.T) {
	if len(s.waiting) == 0 {
		return
	}
	e := rapid.SampledFrom(s.waiting).Draw(t, "who")
	if !s.o.drop(e) || s.o.drop(e) {
		t.Fatal("want to leave once")
	}
	s.forget(e)
}

func (s *scene) pass(t *rapid.T) {
	s.now = s.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
	late := s.o.expire(s.now)
	for _, e := range s.waiting {
		if slices.Contains(late, e) == e.Deadline.After(s.now) {
			t.Fatalf("deadline %v at %v: late is %v", e.Deadline, s.now, slices.Contains(late, e))
		}
	}
	s.forget(late...)
}

// Whatever happens, bounds hold, nobody is lost or served twice, classes come in
// order, and tenants' requests in theirs.
func TestOrderKeepsItsRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &scene{o: newOrder(rapid.IntRange(1, 12).Draw(t, "max"), 100, 15*time.Second), now: start}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": s.arrive, "arrive too": s.arrive, "next": s.takeNext, "leave": s.leave, "pass": s.pass,
			"": func(t *rapid.T) {
				if err := s.o.audit(); err != nil {
					t.Fatal(err)
				}
				if s.o.waiting != len(s.waiting) {
					t.Fatalf("%d wait, want %d", s.o.waiting, len(s.waiting))
				}
			},
		})
	})
}

// Tenants that always have waiters get turns by weight, whatever the stretch of time:
// two of them differ by no more than one turn each.
func TestTurnsAreSharedByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOrder(mostWaiting, math.MaxInt64, time.Hour)
		weights := rapid.SliceOfN(rapid.Float64Range(0.1, 10), 2, 6).Draw(t, "weights")
		class := rapid.IntRange(0, 9).Draw(t, "class")
		arrive := func(i int) { o.arrive(newEntry(fmt.Sprint(i), "p", class, weights[i]), start) }
		for i := range weights {
			arrive(i)
			arrive(i)
		}
		served := make([]float64, len(weights))
		serve := func() {
			e := o.first("p", start)
			o.take(e, start)
			var i int
			fmt.Sscan(e.Tenant, &i)
			served[i]++
			arrive(i)
		}
		for range rapid.IntRange(0, 100).Draw(t, "before") {
			serve()
		}
		clear(served)
		for range rapid.IntRange(1, 300).Draw(t, "turns") {
			serve()
			for i := range weights {
				for j := range i {
					lead := served[i]/weights[i] - served[j]/weights[j]
					if bound := 1/weights[i] + 1/weights[j] + 1e-9; math.Abs(lead) > bound {
						t.Fatalf("weights %v were served %v: %d leads %d by %v, want at most %v", weights, served, i, j, lead, bound)
					}
				}
			}
		}
	})
}

// A class-9 request gets its turn soon after half of MaxWait, however much of class 0
// comes: one round of the tenants there.
func TestNoClassStarvesAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOrder(mostWaiting, math.MaxInt64, 15*time.Second)
		tenants := rapid.IntRange(1, 8).Draw(t, "tenants")
		poor := newEntry("poor", "p", rapid.IntRange(1, 9).Draw(t, "class"), 1)
		o.arrive(poor, start)
		rounds := 0
		for i := 0; ; i++ {
			now := start.Add(time.Duration(i) * 100 * time.Millisecond)
			for range 2 { // twice what can be served
				o.arrive(newEntry(fmt.Sprint(rapid.IntRange(1, tenants).Draw(t, "who")), "p", 0, 1), now)
			}
			e := o.first("p", now)
			o.take(e, now)
			if now.Sub(start) >= o.aging {
				rounds++
			}
			if e == poor {
				break
			}
			if rounds > tenants+1 {
				t.Fatalf("still waits %d turns after it has aged, of %d tenants", rounds, tenants)
			}
		}
		if rounds == 0 {
			t.Fatal("served before it had aged, with class 0 waiting")
		}
	})
}

// Within a class a tenant waits no longer than one turn of each other, however many
// waiters those have.
func TestNoTenantStarvesBehindAFlood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOrder(mostWaiting, math.MaxInt64, time.Hour)
		floods := rapid.IntRange(1, 10).Draw(t, "floods")
		for i := range floods * rapid.IntRange(1, 50).Draw(t, "each") {
			o.arrive(newEntry(fmt.Sprint(i%floods), "p", 5, 1), start)
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			if e := o.first("p", start); e != nil {
				o.take(e, start)
			}
		}
		quiet := newEntry("quiet", "p", 5, 1)
		o.arrive(quiet, start)
		for turns := 1; ; turns++ {
			e := o.first("p", start)
			o.take(e, start)
			if e == quiet {
				return
			}
			if turns > floods {
				t.Fatalf("waited for %d turns of %d tenants", turns, floods)
			}
		}
	})
}

// A tenant that floods the queue makes only its own requests lose their place: others
// of the class wait undisturbed as long as they have fewer waiters.
func TestFloodShedsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const room = 32
		o := newOrder(room, math.MaxInt64, time.Hour)
		quiet := 0
		for range rapid.IntRange(50, 200).Draw(t, "arrivals") {
			who := "flood"
			if quiet < room/2-1 && rapid.IntRange(0, 9).Draw(t, "quiet") == 0 {
				who = fmt.Sprint("quiet ", quiet%3)
			}
			out, ok := o.arrive(newEntry(who, rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pool"), 5, 1), start)
			for _, v := range out {
				if v.Tenant != "flood" {
					t.Fatalf("%s gave way to %s", v.Tenant, who)
				}
			}
			if who != "flood" {
				quiet++
				if !ok {
					t.Fatalf("%s got no place", who)
				}
			}
		}
	})
}

func TestWorstClassGivesWayFirstAndItsNewest(t *testing.T) {
	o := newOrder(3, math.MaxInt64, time.Hour)
	old, young, better := newEntry("a", "p", 9, 1), newEntry("a", "q", 9, 1), newEntry("b", "p", 3, 1)
	for _, e := range []*entry{old, young, better} {
		if _, ok := o.arrive(e, start); !ok {
			t.Fatal("no place")
		}
	}
	for _, want := range []*entry{young, old} {
		if out, ok := o.arrive(newEntry("c", "p", 2, 1), start); !ok || len(out) != 1 || out[0] != want {
			t.Fatalf("got %v, %v", out, ok)
		}
	}
	if out, ok := o.arrive(newEntry("d", "p", 4, 1), start); ok || out != nil {
		t.Errorf("class 4 took a place among 2, 2 and 3: %v", out)
	}
}

// A large body may take the place of a few, not of many, and none is lost in vain.
func TestLargeBodyTakesFewPlaces(t *testing.T) {
	o := newOrder(100, 100, time.Hour)
	for i := range 100 {
		o.arrive(newEntry(fmt.Sprint(i), "p", 9, 1), start)
	}
	big := newEntry("big", "p", 0, 1)
	big.Bytes = maxGiveWay + 1
	if out, ok := o.arrive(big, start); ok || out != nil || o.waiting != 100 || o.audit() != nil {
		t.Errorf("got %d, %v, %v", len(out), ok, o.audit())
	}
	big.Bytes = maxGiveWay
	if out, ok := o.arrive(big, start); !ok || len(out) != maxGiveWay || o.audit() != nil {
		t.Errorf("got %d, %v, %v", len(out), ok, o.audit())
	}
}

// Many tenants that come once leave no trace without end.
func TestIdleTenantsAreForgotten(t *testing.T) {
	o := newOrder(10, math.MaxInt64, time.Hour)
	o.arrive(newEntry("stays", "p", 5, 1000), start)
	o.arrive(newEntry("stays", "p", 5, 1000), start)
	for i := range 3 * maxIdle {
		e := newEntry(fmt.Sprint(i), "p", 5, 0.01)
		o.arrive(e, start)
		o.take(e, start)
	}
	if err := o.audit(); err != nil {
		t.Error(err)
	}
}

// Aging reorders the turns while they are gone through: nobody is passed over.
func TestAllWhoHaveAgedAreOfClassZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOrder(mostWaiting, math.MaxInt64, 15*time.Second)
		now := start
		for range rapid.IntRange(50, 100).Draw(t, "arrivals") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 5 * time.Second}).Draw(t, "step"))
			who := fmt.Sprint(rapid.IntRange(1, 30).Draw(t, "who"))
			o.arrive(newEntry(who, "p", 9, rapid.Float64Range(0.1, 10).Draw(t, "weight")), now)
			if rapid.IntRange(0, 2).Draw(t, "serve") == 0 {
				o.take(o.first("p", now), now)
			}
			if o.first("p", now) == nil {
				continue
			}
			for c := 1; c < classes; c++ {
				for _, f := range o.lines["p"].class[c].busy {
					if now.Sub(f.first.since) >= o.aging {
						t.Fatalf("one of %s waits in class %d for %v", f.tenant, c, now.Sub(f.first.since))
					}
				}
			}
			if err := o.audit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
