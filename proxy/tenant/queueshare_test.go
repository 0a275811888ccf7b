package tenant

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kvca/state/turn"
	"kvca/state/virtualtime"
)

// street is nodes that share the pool "p", which is called from the first of them that
// each can reach. Messages come in order, after delay, unless their way is cut.
type street struct {
	floor
	nodes []*Queue
	delay time.Duration

	mu    sync.Mutex
	least int64           // that ever were free
	cut   map[[2]int]bool // from, to
	mute  map[int]bool    // what it says is lost, and its links stay up
	ways  map[[2]int]chan *turn.Message
	done  chan struct{}
	work  sync.WaitGroup
}

// end is one node's end of the street.
type end struct {
	s    *street
	self int
}

func (e end) up(to int) bool { return !e.s.cut[[2]int{e.self, to}] && !e.s.cut[[2]int{to, e.self}] }

func (e end) Caller(string) string {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	for i := range e.self {
		if e.up(i) {
			return strconv.Itoa(i)
		}
	}
	return ""
}

func (e end) Tell(node string, m *turn.Message) bool {
	to, _ := strconv.Atoi(node)
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if !e.up(to) {
		return false
	}
	if !e.s.mute[e.self] {
		e.s.ways[[2]int{e.self, to}] <- m
	}
	return true
}

func (e end) TellAll(m *turn.Message) {
	for i := range e.s.nodes {
		if i != e.self {
			e.Tell(strconv.Itoa(i), m)
		}
	}
}

func newStreet(n, slots int, delay time.Duration) *street {
	s := &street{
		delay: delay, cut: make(map[[2]int]bool), mute: make(map[int]bool),
		ways: make(map[[2]int]chan *turn.Message), done: make(chan struct{}),
	}
	s.free.Store(int64(slots))
	for i := range n {
		q := NewQueue(QueueConfig{MaxWait: 20 * time.Second}, nil)
		q.Share(end{s, i}, func(pool string, backends uint64) (int, bool) {
			return s.room(), pool == "p" && (backends == 0 || backends == 1)
		})
		s.nodes = append(s.nodes, q)
	}
	for from := range n {
		for to := range n {
			way := make(chan *turn.Message, 1<<16)
			s.ways[[2]int{from, to}] = way
			s.work.Go(func() { s.carry(way, from, to) })
		}
	}
	return s
}

func (s *street) carry(way <-chan *turn.Message, from, to int) {
	for {
		select {
		case <-s.done:
			return
		case m := <-way:
			time.Sleep(s.delay)
			s.mu.Lock()
			lost := s.cut[[2]int{from, to}]
			s.mu.Unlock()
			if !lost {
				s.nodes[to].Hear(strconv.Itoa(from), m)
			}
		}
	}
}

// part cuts the ways between two nodes, or joins them again.
func (s *street) part(a, b int, cut bool) {
	s.mu.Lock()
	s.cut[[2]int{a, b}], s.cut[[2]int{b, a}] = cut, cut
	s.mu.Unlock()
	if cut {
		s.nodes[a].Gone(strconv.Itoa(b))
		s.nodes[b].Gone(strconv.Itoa(a))
	}
}

// audit finds what is left of those who don't wait any more.
func (s *street) audit() error {
	for i, q := range s.nodes {
		if err := q.order.audit(); err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		if err := q.calls.audit(); err != nil {
			return fmt.Errorf("calls of node %d: %w", i, err)
		}
		h := &q.share
		if q.order.waiting+q.calls.waiting+len(h.waits)+len(h.callers)+len(h.called)+len(h.announced) > 0 {
			return fmt.Errorf("node %d: left are %d waiters, %d calls, %d numbers, %d callers, %d called, %d announced",
				i, q.order.waiting, q.calls.waiting, len(h.waits), len(h.callers), len(h.called), len(h.announced))
		}
	}
	return nil
}

func (s *street) close(t *testing.T) {
	time.Sleep(time.Minute) // what is late comes, what is forgotten goes
	synctest.Wait()
	if err := s.audit(); err != nil {
		t.Error(err)
	}
	close(s.done)
	s.work.Wait()
}

// visit goes through the queue of a node, stays for a while and leaves. It returns how
// long it waited.
func (s *street) visit(ctx context.Context, node int, w Waiter, stay time.Duration) (time.Duration, error) {
	q := s.nodes[node]
	waited, err := q.Enter(ctx, "p", w, s.room)
	if err != nil {
		return waited, err
	}
	free := s.free.Add(-1)
	s.mu.Lock()
	s.least = min(s.least, free)
	s.mu.Unlock()
	if waited > 0 {
		q.Booked("p")
	}
	time.Sleep(stay)
	s.free.Add(1)
	q.Freed("p")
	return waited, nil
}

// flood keeps so many visitors of one tenant at a node until ctx ends.
func (s *street) flood(ctx context.Context, node, visitors int, who string, stay time.Duration, all *sync.WaitGroup) *atomic.Int64 {
	var served atomic.Int64
	for range visitors {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.visit(ctx, node, Waiter{Tenant: who}, stay); err == nil {
					served.Add(1)
				}
			}
		})
	}
	return &served
}

func TestAQuietTenantDoesNotWaitForOthersOnAnyNode(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		const nodes, slots, stay = 8, 4, time.Second
		s := newStreet(nodes, slots, time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for node := range nodes {
			if node != 5 { // where no slot ever becomes free but that of the quiet one
				s.flood(ctx, node, 40, "flood", stay+time.Duration(node)*10*time.Millisecond, &all)
			}
		}
		time.Sleep(5 * time.Second)
		for i := range 20 {
			time.Sleep(time.Duration(i*37) * time.Millisecond)
			waited, err := s.visit(t.Context(), 5, Waiter{Tenant: "quiet"}, stay)
			if err != nil || waited > stay+stay/4 {
				t.Errorf("visit %d waited %v, %v; a slot becomes free every %v at least", i, waited, err, stay)
			}
		}
		cancel()
		all.Wait()
		s.close(t)
	})
}

func TestNodesTakeTurns(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := newStreet(3, 4, time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		one := s.flood(ctx, 1, 8, "a", 100*time.Millisecond, &all)
		time.Sleep(time.Second) // it has all slots
		two := s.flood(ctx, 2, 8, "b", 100*time.Millisecond, &all)
		was := one.Load()
		time.Sleep(20 * time.Second)
		a, b := one.Load()-was, two.Load()
		if b < a*9/10 || a < b*9/10 {
			t.Errorf("%d were served of the first node, %d of the second", a, b)
		}
		if n := a + b; n < 4*190 {
			t.Errorf("%d were served; 4 slots could serve 800", n)
		}
		cancel()
		all.Wait()
		s.close(t)
	})
}

func TestCallersThatGoAndAreSilentAreDoneWithout(t *testing.T) {
	for name, lose := range map[string]func(s *street){
		"cut off": func(s *street) { s.part(0, 1, true); s.part(0, 2, true) },
		"silent":  func(s *street) { s.mu.Lock(); s.mute[0] = true; s.mu.Unlock() },
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := newStreet(3, 2, time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				served := []*atomic.Int64{s.flood(ctx, 1, 4, "a", 100*time.Millisecond, &all), s.flood(ctx, 2, 4, "b", 100*time.Millisecond, &all)}
				time.Sleep(time.Second)
				lose(s)
				time.Sleep(2 * time.Second)
				was := []int64{served[0].Load(), served[1].Load()}
				time.Sleep(10 * time.Second)
				for i := range served {
					if n := served[i].Load() - was[i]; n < 30 { // each node calls its own by chance
						t.Errorf("node %d: %d were served in 10 s, 100 is its share", i+1, n)
					}
				}
				cancel()
				all.Wait()
				s.close(t)
			})
		})
	}
}

func TestPoolsThatTheCallerDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		pool     string
		backends uint64
	}{"unknown": {"mine", 1}, "other backends": {"p", 2}} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := newStreet(2, 0, time.Millisecond)
				var f floor
				done := make(chan error, 1)
				go func() {
					_, err := s.nodes[1].Enter(t.Context(), c.pool, Waiter{Backends: c.backends}, f.room)
					done <- err
				}()
				time.Sleep(100 * time.Millisecond)
				f.free.Store(1)
				time.Sleep(2 * pollRoomEvery)
				synctest.Wait()
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				default:
					t.Error("it waits on")
				}
				s.close(t)
			})
		})
	}
}

// Nodes are parted, fall silent and come back while requests come and go: every request
// ends as it should, slots are used twice only where nodes can't know, and nothing is
// left. KVCA_SEED repeats one run.
func TestSharedQueuesUnderAnySchedule(t *testing.T) {
	first, runs := rand.Uint64(), 30
	if text := os.Getenv("KVCA_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
		runs = 1
	}
	for i := range runs {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) { anySchedule(t, seed) })
		})
	}
}

func anySchedule(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	nodes, slots := 2+r.IntN(4), 1+r.IntN(6)
	s := newStreet(nodes, slots, time.Duration(r.IntN(10_000))*time.Microsecond)
	var all sync.WaitGroup
	var ended atomic.Int64
	const visitors = 200
	for v := range visitors {
		node, after, stay := r.IntN(nodes), time.Duration(r.Int64N(int64(4*time.Second))), time.Duration(r.Int64N(int64(300*time.Millisecond)))
		patience := time.Duration(r.Int64N(int64(30 * time.Second)))
		w := Waiter{Tenant: fmt.Sprint(v % 3), Class: v % 2}
		all.Go(func() {
			time.Sleep(after)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := s.visit(ctx, node, w, stay)
			if err != nil && !errors.Is(err, ErrWaited) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("visitor %d: %v", v, err)
			}
			ended.Add(1)
		})
	}
	for range r.IntN(8) {
		time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
		a, b := r.IntN(nodes), r.IntN(nodes)
		switch r.IntN(3) {
		case 0:
			if a != b {
				s.part(a, b, true)
			}
		case 1:
			if a != b {
				s.part(a, b, false)
			}
		default:
			s.mu.Lock()
			s.mute[a] = !s.mute[a]
			s.mu.Unlock()
		}
	}
	s.mu.Lock()
	clear(s.mute)
	s.mu.Unlock()
	for a := range nodes {
		for b := range a {
			s.part(a, b, false)
		}
	}
	all.Wait()
	if int(s.free.Load()) != slots || ended.Load() != visitors {
		t.Errorf("%d of %d slots are free, %d of %d have ended", s.free.Load(), slots, ended.Load(), visitors)
	}
	if s.least < -int64(nodes*slots) { // each node may let as many in before it sees the others
		t.Errorf("slots were used %d times too often at once", -s.least)
	}
	s.close(t)
}
