package cluster

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/cluster/wire"
	"kvca/state/ledger"
	"kvca/state/turn"
)

// ear is a queue that remembers what it hears.
type ear struct {
	mu    sync.Mutex
	heard []string
	// load is looked at with each message.
	load func() ledger.Load
}

func (e *ear) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, fmt.Sprintf(format, args...))
}

func (e *ear) Hear(node string, m *turn.Message) {
	active := int64(0)
	if e.load != nil {
		active = e.load().Active
	}
	e.note("%s says %d of %s, %d active", node, m.Op, m.Pool, active)
}

func (e *ear) Gone(node string) { e.note("%s is gone", node) }

func (e *ear) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := strings.Join(e.heard, "\n")
	e.heard = nil
	return text
}

// withEars starts nodes with such queues.
func (w *world) withEars(count, backends int) map[string]*ear {
	ears := make(map[string]*ear)
	w.start(count, backends, func(c *Config) {
		ears[c.Node] = &ear{}
		c.Queue = ears[c.Node]
	})
	w.eventually("together", 20*time.Second, w.together)
	return ears
}

func TestNodesAgreeOnWhoCallsForAPool(t *testing.T) {
	inBubble(t, 51, func(w *world) {
		w.withEars(4, 1)
		calls := make(map[string]int)
		for i := range 200 {
			pool, who := fmt.Sprint("pool ", i), ""
			for _, n := range w.nodes {
				caller := n.c.Turns().Caller(pool)
				if caller == "" {
					caller = n.name
				}
				if who == "" {
					who = caller
				}
				if caller != who {
					t.Errorf("%s: %s takes %s for its caller, another %s", pool, n.name, caller, who)
				}
			}
			calls[who]++
		}
		for _, n := range w.nodes {
			if calls[n.name] < 20 {
				t.Errorf("%s calls for %d of 200 pools", n.name, calls[n.name])
			}
		}
	})
}

// What is said of a request that has begun or ended comes behind the loads that show
// it, and soon; the rest at once.
func TestTurnsComeBehindTheLoadsTheyAreAbout(t *testing.T) {
	inBubble(t, 52, func(w *world) {
		w.net.SetStreams(200*time.Microsecond, 100*time.Microsecond)
		ears := w.withEars(2, 1)
		a, b := w.nodes[0], w.nodes[1]
		ear := ears["n1"]
		ear.load = func() ledger.Load { return b.l.Load(b.fleet.slot("b0")) }
		for i := range 50 {
			time.Sleep(time.Duration(i) * 300 * time.Microsecond)
			ear.take()
			a.reserve(1, 0)
			if !a.c.Turns().Tell("n1", &turn.Message{Op: turn.Booked, Pool: "p"}) {
				t.Fatal("it was not told")
			}
			time.Sleep(10 * time.Millisecond)
			if got, want := ear.take(), fmt.Sprintf("n0 says %d of p, 1 active", turn.Booked); got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
			a.release(0)
			a.c.Turns().Tell("n1", &turn.Message{Op: turn.Freed, Pool: "p"})
			time.Sleep(10 * time.Millisecond)
			if got, want := ear.take(), fmt.Sprintf("n0 says %d of p, 0 active", turn.Freed); got != want {
				t.Errorf("heard %q, want %q", got, want)
			}
		}
		a.c.Turns().TellAll(&turn.Message{Op: turn.Crowded, Pool: "p"})
		time.Sleep(time.Millisecond)
		if got := ear.take(); !strings.HasPrefix(got, fmt.Sprintf("n0 says %d of p", turn.Crowded)) {
			t.Errorf("heard %q", got)
		}
		if a.c.Turns().Tell("nobody", &turn.Message{Op: turn.Go}) || a.c.Turns().Tell("n1", &turn.Message{Op: turn.Go, Pool: strings.Repeat("x", turn.MaxName+1)}) {
			t.Error("what can't be told was taken")
		}
		b.kill()
		w.eventually("n1 is gone", 5*time.Second, func() string {
			if got := ears["n0"].take(); !strings.Contains(got, "n1 is gone") {
				return got
			}
			return ""
		})
		if caller := a.c.Turns().Caller("p"); caller != "" {
			t.Errorf("%s calls, which can't be reached", caller)
		}
		if a.c.Turns().Tell("n1", &turn.Message{Op: turn.Freed, Pool: "p"}) {
			t.Error("a node that is gone was told")
		}
	})
}

func TestFramesAboutTurnsThatAreNone(t *testing.T) {
	n := newLonely(t)
	for name, body := range map[string][]byte{
		"empty":       nil,
		"unknown":     wire.AppendTurn(nil, &turn.Message{Op: turn.Ops}),
		"cut off":     wire.AppendTurn(nil, &turn.Message{Op: turn.Wait, Pool: "p"})[:5],
		"a long name": wire.AppendTurn(nil, &turn.Message{Op: turn.Wait, Pool: strings.Repeat("x", turn.MaxName+1)}),
	} {
		malformed := n.metrics.malformed.WithLabelValues("malformed")
		was := valueOf(malformed)
		n.Deliver("peer", wire.Turn, body)
		if valueOf(malformed) != was+1 {
			t.Errorf("%s: it was not found malformed", name)
		}
	}
	n.Deliver("peer", wire.Turn, wire.AppendTurn(nil, &turn.Message{Op: turn.Wait, Pool: "p"})) // nobody listens
}
