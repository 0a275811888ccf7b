package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvca/cluster/member"
)

func (n *testNode) ids() []string {
	var ids []string
	for _, b := range n.fleet.Backends() {
		ids = append(ids, b.ID)
	}
	slices.Sort(ids)
	return ids
}

// have waits until every live node has exactly these backends.
func (w *world) have(t *testing.T, want ...string) {
	t.Helper()
	w.eventually(fmt.Sprint(want), 5*time.Second, func() string {
		for _, n := range w.nodes {
			if n.alive && !slices.Equal(n.ids(), want) {
				return fmt.Sprintf("%s has %v", n.name, n.ids())
			}
		}
		return ""
	})
}

func TestAnOperatorsChangesReachEveryNode(t *testing.T) {
	inBubble(t, 31, func(w *world) {
		w.start(3, 2, nil)
		learner := &testNode{w: w, name: "learner", host: w.net.Host("learner"), edit: func(c *Config) { c.LearnBackends = true }}
		w.nodes = append(w.nodes, learner)
		learner.run(0)
		w.have(t, "b0", "b1")

		// The admin API adds to its own node before it tells.
		added := Backend{ID: "new", URL: "http://10.0.0.9:8000", Weight: 2, Zone: "west"}
		w.nodes[1].fleet.Add(added)
		if err := w.nodes[1].c.Added(added); err != nil {
			t.Fatal(err)
		}
		w.have(t, "b0", "b1", "new")
		for _, b := range learner.fleet.Backends() {
			if b.ID == "new" && (b.URL != added.URL || b.Weight != 2 || b.Zone != "west") {
				t.Errorf("the learner has %+v", b)
			}
		}

		// One that each node was given goes too, and no roster brings it back.
		w.nodes[2].c.Removed("b1")
		w.nodes[2].fleet.Drop("b1")
		w.have(t, "b0", "new")
		time.Sleep(30 * time.Second)
		w.have(t, "b0", "new")

		// Who was away learns of it, its own configuration or not.
		w.nodes[0].kill()
		time.Sleep(5 * time.Second)
		w.nodes[0].restart(2)
		w.have(t, "b0", "new")

		// A node's own operator has the last word there.
		w.nodes[0].fleet.Add(Backend{ID: "b1", URL: "http://b1"})
		time.Sleep(10 * time.Second)
		if got := w.nodes[0].ids(); !slices.Contains(got, "b1") {
			t.Errorf("what was added by hand is gone: %v", got)
		}
	})
}

func TestABackendThatIsAddedAgainIsNotDrained(t *testing.T) {
	inBubble(t, 32, func(w *world) {
		w.start(2, 2, nil)
		w.eventually("together", 5*time.Second, w.together)
		w.nodes[0].c.Drained("b1", true)
		drained := func(want bool) func() string {
			return func() string {
				f := w.nodes[1].fleet
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.drained["b1"] != want {
					return fmt.Sprintf("drained is %v", f.drained["b1"])
				}
				return ""
			}
		}
		w.eventually("drained", 2*time.Second, drained(true))
		w.nodes[0].c.Removed("b1")
		w.nodes[0].fleet.Drop("b1")
		w.have(t, "b0")
		b := Backend{ID: "b1", URL: "http://b1"}
		w.nodes[0].fleet.Add(b)
		if err := w.nodes[0].c.Added(b); err != nil {
			t.Fatal(err)
		}
		w.have(t, "b0", "b1")
		w.eventually("undrained", 2*time.Second, drained(false))
	})
}

// mentions counts the lines of a log that have the text.
type mentions struct {
	text string
	atomic.Int64
}

func (m *mentions) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(m.text)) {
		m.Add(1)
	}
	return len(line), nil
}

func TestADrainOfABackendThatIsGoneIsNoFault(t *testing.T) {
	for _, gone := range []bool{true, false} {
		inBubble(t, 34, func(w *world) {
			warned := &mentions{text: "drain is not followed"}
			w.log = slog.New(slog.NewTextHandler(warned, nil))
			w.start(2, 2, nil)
			w.eventually("together", 5*time.Second, w.together)
			fleet, asked := w.nodes[1].fleet, make(chan struct{})
			refuse := func(id string) error {
				if gone { // between the roster and the drain
					fleet.Remove(id)
				}
				close(asked)
				return errors.New("it can't be drained")
			}
			fleet.mu.Lock()
			fleet.refuse = refuse
			fleet.mu.Unlock()
			w.nodes[0].c.Drained("b1", true)
			<-asked
			time.Sleep(time.Second)
			if n := warned.Load(); (n == 0) != gone {
				t.Errorf("gone %v, %d warnings", gone, n)
			}
		})
	}
}

func TestABackendThatIsReplacedIsReplacedEverywhere(t *testing.T) {
	inBubble(t, 34, func(w *world) {
		w.start(3, 1, nil)
		w.eventually("together", 5*time.Second, w.together)
		replace := func(n *testNode, url string) {
			n.c.Removed("x")
			n.fleet.Drop("x")
			b := Backend{ID: "x", URL: url, Weight: 1}
			n.fleet.Add(b)
			if err := n.c.Added(b); err != nil {
				t.Fatal(err)
			}
		}
		everywhere := func(urls ...string) func() string {
			return func() string {
				seen := ""
				for _, n := range w.nodes {
					for _, b := range n.fleet.Backends() {
						if b.ID == "x" {
							seen += " " + b.URL
						}
					}
				}
				for _, url := range urls {
					if seen == strings.Repeat(" "+url, len(w.nodes)) {
						return ""
					}
				}
				return seen
			}
		}
		replace(w.nodes[0], "http://one")
		w.eventually("added", 5*time.Second, everywhere("http://one"))
		replace(w.nodes[0], "http://two")
		w.eventually("replaced", 5*time.Second, everywhere("http://two"))
		// At the same time at all nodes: one of them wins.
		for i, n := range w.nodes {
			replace(n, fmt.Sprint("http://at-", i))
		}
		w.eventually("one of three", 10*time.Second, everywhere("http://at-0", "http://at-1", "http://at-2"))
	})
}

func TestABackendTooLongForAFactIsRefused(t *testing.T) {
	inBubble(t, 33, func(w *world) {
		w.start(1, 1, nil)
		err := w.nodes[0].c.Added(Backend{ID: "x", URL: "http://" + strings.Repeat("x", member.MaxFactText)})
		if err == nil || !strings.Contains(err.Error(), "at most 512") {
			t.Errorf("told: %v", err)
		}
		if _, known := w.nodes[0].c.facts.changes()["x"]; known {
			t.Error("a fact was made of it")
		}
	})
}
