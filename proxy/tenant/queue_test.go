package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvca/state/virtualtime"
)

// floor is a pool with so many slots.
type floor struct{ free atomic.Int64 }

func (f *floor) room() int { return int(f.free.Load()) }

// guest is one call of Enter that is under way.
type guest struct {
	waited time.Duration
	err    error
	done   chan struct{}
	cancel context.CancelFunc
}

// enter calls Enter on a goroutine of its own and lets it come to rest. Who is let in
// takes a slot and, where it waited, says that it is booked.
func enter(t *testing.T, q *Queue, f *floor, w Waiter) *guest {
	ctx, cancel := context.WithCancel(t.Context())
	g := &guest{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(g.done)
		if g.waited, g.err = q.Enter(ctx, "p", w, f.room); g.err == nil {
			f.free.Add(-1)
			if g.waited > 0 {
				q.Booked("p")
			}
		}
	}()
	synctest.Wait()
	return g
}

func (g *guest) waits() bool {
	select {
	case <-g.done:
		return false
	default:
		return true
	}
}

// leave gives a slot back, as a request does that has ended.
func (f *floor) leave(q *Queue) {
	f.free.Add(1)
	q.Freed("p")
	synctest.Wait()
}

func TestEntersAtOnceWhereThereIsRoom(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		f.free.Store(1)
		if g := enter(t, q, &f, Waiter{}); g.waits() || g.err != nil || g.waited != 0 {
			t.Errorf("got %+v", g)
		}
	})
}

func TestEachThatEndsLetsOneIn(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		late := enter(t, q, &f, Waiter{Tenant: "a", Class: 5})
		time.Sleep(5 * time.Millisecond)
		first := enter(t, q, &f, Waiter{Tenant: "b", Class: 1})
		second := enter(t, q, &f, Waiter{Tenant: "c", Class: 1})
		if n := q.Waiting("p"); n != 3 {
			t.Fatalf("%d wait", n)
		}
		for i, g := range []*guest{first, second, late} {
			if !g.waits() {
				t.Fatalf("%d came in early", i)
			}
			f.leave(q)
			if g.waits() || g.err != nil {
				t.Fatalf("%d is not in, or %v", i, g.err)
			}
		}
		if late.waited != 5*time.Millisecond || q.Waiting("p") != 0 {
			t.Errorf("waited %v, %d wait", late.waited, q.Waiting("p"))
		}
	})
}

// Room may come without a word: other nodes' requests end, backends are added. All of
// it is used as fast as requests are booked, and no slot twice.
func TestRoomThatNobodyTellsOfIsFoundAndNotUsedTwice(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		var all []*guest
		for range 10 {
			all = append(all, enter(t, q, &f, Waiter{}))
		}
		f.free.Store(7)
		time.Sleep(pollRoomEvery)
		synctest.Wait()
		if n := q.Waiting("p"); n != 3 || f.free.Load() != 0 {
			t.Errorf("%d wait, %d free", n, f.free.Load())
		}
		for _, g := range all {
			g.cancel()
		}
	})
}

// Where nobody says Booked, a slot counts as taken until settleTime is over.
func TestASlotIsTakenWhileNobodyIsBooked(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var f floor
		for range 10 {
			go q.Enter(ctx, "p", Waiter{}, f.room)
		}
		synctest.Wait()
		f.free.Store(2)
		for want := 8; want > 2; want -= 2 {
			for range settleTime / pollRoomEvery {
				time.Sleep(pollRoomEvery)
				synctest.Wait()
				if n := q.Waiting("p"); n != want {
					t.Errorf("%d wait, want %d", n, want)
				}
			}
		}
		cancel()
	})
}

// A slot that becomes free between the look and the wait is not missed.
func TestRoomInTheNickOfTime(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		looks := 0
		waited, err := q.Enter(t.Context(), "p", Waiter{}, func() int { looks++; return min(looks-1, 1) })
		if err != nil || waited > time.Microsecond {
			t.Errorf("waited %v, %v", waited, err)
		}
	})
}

func TestNobodyPassesThoseWhoWait(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		first := enter(t, q, &f, Waiter{Tenant: "a"})
		f.free.Store(1)
		second := enter(t, q, &f, Waiter{Tenant: "b"})
		if first.waits() || !second.waits() {
			t.Errorf("the first waits: %v, the second: %v", first.waits(), second.waits())
		}
		second.cancel()
	})
}

func TestOtherPoolsDoNotWait(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		g := enter(t, q, new(floor), Waiter{})
		if waited, err := q.Enter(t.Context(), "other", Waiter{}, func() int { return 1 }); waited != 0 || err != nil {
			t.Errorf("waited %v, %v", waited, err)
		}
		g.cancel()
	})
}

func TestWaitEnds(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{MaxWait: 10 * time.Second}, nil)
		var f floor
		now := time.Now()
		for _, c := range []struct {
			deadline time.Time
			want     time.Duration
		}{
			{time.Time{}, 10 * time.Second}, {now.Add(2 * time.Second), 2 * time.Second}, {now.Add(time.Hour), 10 * time.Second}, {now, 0},
		} {
			go func() {
				waited, err := q.Enter(t.Context(), "p", Waiter{Deadline: c.deadline}, f.room)
				if !errors.Is(err, ErrWaited) || waited < c.want || waited > c.want+pollRoomEvery {
					t.Errorf("%v: waited %v, %v", c.deadline, waited, err)
				}
			}()
		}
		time.Sleep(11 * time.Second)
		if n := q.Waiting("p"); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

func TestClientThatLeavesGivesItsPlaceUp(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		gone, stays := enter(t, q, &f, Waiter{}), enter(t, q, &f, Waiter{})
		gone.cancel()
		synctest.Wait()
		if gone.waits() || !errors.Is(gone.err, context.Canceled) || q.Waiting("p") != 1 {
			t.Errorf("got %v, %d wait", gone.err, q.Waiting("p"))
		}
		f.leave(q)
		if stays.waits() || stays.err != nil {
			t.Errorf("the other waits on, or %v", stays.err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Enter(ctx, "p", Waiter{}, f.room); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// The client leaves in the moment in which its turn comes: the turn is the next one's.
func TestTurnOfOneWhoHasGoneIsAnothers(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		gone := q.entry("p", Waiter{}, f.room)
		if err := q.join(gone, time.Now()); err != nil {
			t.Fatal(err)
		}
		next := enter(t, q, &f, Waiter{})
		f.leave(q) // lets the first in, who does not look
		if !next.waits() {
			t.Fatal("both came in")
		}
		if err := q.leave(gone, context.Canceled); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if next.waits() || next.err != nil {
			t.Error("the turn was lost")
		}
	})
}

func TestFullQueueTurnsTheFloodAway(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{MaxWaiting: 4}, nil)
		var f floor
		var flood []*guest
		for range 6 {
			flood = append(flood, enter(t, q, &f, Waiter{Tenant: "flood", Class: 5}))
		}
		quiet := enter(t, q, &f, Waiter{Tenant: "quiet", Class: 5})
		var out []int
		for i, g := range flood {
			if !g.waits() {
				if !errors.Is(g.err, ErrQueueFull) {
					t.Errorf("%d: got %v", i, g.err)
				}
				out = append(out, i)
			}
		}
		if !slices.Equal(out, []int{3, 4, 5}) || !quiet.waits() {
			t.Errorf("turned away %v, quiet waits: %v", out, quiet.waits())
		}
		if g := enter(t, q, &f, Waiter{Bytes: 1 << 40}); g.waits() || !errors.Is(g.err, ErrQueueFull) {
			t.Errorf("a body beyond the bound: got %v", g.err)
		}
		for _, g := range append(flood, quiet) {
			g.cancel()
		}
	})
}

// ticks is whether the timer is set.
func (q *Queue) ticks() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running && q.timer.Reset(pollRoomEvery)
}

func TestTimerRunsOnlyWhileSomeoneWaits(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{}, nil)
		var f floor
		for range 3 {
			g := enter(t, q, &f, Waiter{})
			time.Sleep(50 * time.Millisecond)
			if !q.ticks() {
				t.Error("someone waits, no timer runs")
			}
			g.cancel()
			synctest.Wait()
			if q.ticks() {
				t.Error("nobody waits, a timer runs")
			}
		}
	})
}

func TestWaitersOutOfRangeAreBroughtBack(t *testing.T) {
	q := NewQueue(QueueConfig{MaxWaiting: 1 << 30, MaxBytes: -1}, nil)
	if q.config.MaxWaiting != mostWaiting || q.config.MaxBytes != 256<<20 || q.config.MaxWait != 30*time.Second {
		t.Errorf("got %+v", q.config)
	}
	nan := 0.0
	for in, want := range map[Waiter]Waiter{
		{Class: -1, Weight: -3, Bytes: -1}:     {Class: 0, Weight: 1},
		{Class: 10, Weight: 1e9}:               {Class: 9, Weight: mostWeight},
		{Class: 3, Weight: 1e-9}:               {Class: 3, Weight: leastWeight},
		{Class: 3, Weight: nan / nan}:          {Class: 3, Weight: 1},
		{Class: 3, Weight: 0.5, Bytes: 1 << 9}: {Class: 3, Weight: 0.5, Bytes: 1 << 9},
	} {
		if got := q.entry("p", in, nil).Waiter; got != want {
			t.Errorf("%+v: got %+v", in, got)
		}
	}
}

func TestWaitingIsCounted(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		q := NewQueue(QueueConfig{MaxWaiting: 2, MaxWait: time.Second}, reg)
		var f floor
		enter(t, q, &f, Waiter{Class: 2})
		enter(t, q, &f, Waiter{Class: 2})
		enter(t, q, &f, Waiter{Class: 7}) // full
		waiting := func(class int) float64 { return testutil.ToFloat64(q.metrics.waiting[class]) }
		if waiting(2) != 2 || waiting(7) != 0 {
			t.Errorf("waiting %v and %v", waiting(2), waiting(7))
		}
		f.leave(q)
		time.Sleep(2 * time.Second) // past the other's deadline
		synctest.Wait()
		enter(t, q, &f, Waiter{}).cancel()
		synctest.Wait()
		want := `
			# HELP kvca_queue_shed_total Requests that lost their place in the queue or got none: the queue was full, their deadline passed, or their client left.
			# TYPE kvca_queue_shed_total counter
			kvca_queue_shed_total{reason="client_gone"} 1
			kvca_queue_shed_total{reason="deadline"} 1
			kvca_queue_shed_total{reason="full"} 1
		`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "kvca_queue_shed_total"); err != nil {
			t.Error(err)
		}
		if n := testutil.CollectAndCount(q.metrics.waited); n != 1 || waiting(2) != 0 {
			t.Errorf("waiting %v", waiting(2))
		}
	})
}

// Many come and go at once: everyone gets an answer, and slots are not handed out
// twice by those who wait.
func TestCrowdIsServed(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		q := NewQueue(QueueConfig{MaxWaiting: 64}, nil)
		var f floor
		f.free.Store(4)
		var all sync.WaitGroup
		var served, full, left atomic.Int64
		for i := range 300 {
			all.Go(func() {
				time.Sleep(time.Duration(i*7%100) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(50+i*13%400)*time.Millisecond)
				defer cancel()
				waited, err := q.Enter(ctx, "p", Waiter{Tenant: fmt.Sprint(i % 5), Class: i % 3, Bytes: int64(i)}, f.room)
				switch {
				case errors.Is(err, ErrQueueFull):
					full.Add(1)
				case err != nil:
					left.Add(1)
				default:
					f.free.Add(-1)
					if waited > 0 {
						q.Booked("p")
					}
					time.Sleep(10 * time.Millisecond)
					f.free.Add(1)
					q.Freed("p")
					served.Add(1)
				}
			})
		}
		all.Wait()
		if served.Load() == 0 || full.Load() == 0 || left.Load() == 0 || served.Load()+full.Load()+left.Load() != 300 {
			t.Errorf("served %d, full %d, left %d: want some of each", served.Load(), full.Load(), left.Load())
		}
		if q.Waiting("p") != 0 || q.order.audit() != nil || f.free.Load() != 4 {
			t.Errorf("%d wait, %d free, %v", q.Waiting("p"), f.free.Load(), q.order.audit())
		}
	})
}
