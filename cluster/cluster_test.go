package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"kvca/state/ledger"
)

func TestNodesFindEachOther(t *testing.T) {
	for _, count := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			inBubble(t, 1, func(w *world) {
				w.start(count, 8, nil)
				took := w.eventually("together", 5*time.Second, w.together)
				t.Logf("%d nodes together after %v", count, took)
				for i := range 8 {
					owner := w.nodes[0].c.Status().Owners(backendID(i))
					for _, n := range w.nodes {
						if got := n.c.Status().Owners(backendID(i)); got != owner {
							t.Errorf("%s says %s owns %s, n0 says %s", n.name, got, backendID(i), owner)
						}
					}
				}
			})
		})
	}
}

func TestWhatOneNodeLearnsAllKnow(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		w.start(3, 4, nil)
		w.eventually("together", 5*time.Second, w.together)
		turn := path(1, 40)
		w.nodes[0].learn(2, turn[:30])
		time.Sleep(100 * time.Millisecond)
		w.nodes[1].learn(2, turn)
		time.Sleep(100 * time.Millisecond)
		for _, n := range w.nodes {
			if got := n.matched(2, turn); got != 40 {
				t.Errorf("%s matches %d of 40 blocks", n.name, got)
			}
		}
		if why := w.sameMaps(); why != "" {
			t.Error(why)
		}
	})
}

func TestSimultaneousRequestsSpreadEvenly(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.start(3, 8, nil)
		w.eventually("together", 5*time.Second, w.together)
		for round := range 5 {
			counts := make([]int, 8)
			chosen := make(chan int, 40)
			for i := range 40 {
				n := w.nodes[i%3]
				o := n.order(8, -1)
				n.held = append(n.held, o.ID)
				go func() { chosen <- n.loads.Reserve(context.Background(), o).Index }()
			}
			for range 40 {
				counts[<-chosen]++
			}
			for i, n := range counts {
				if n < 4 || n > 6 {
					t.Errorf("round %d: %s got %d of 40 on 8 backends, want 5 within one: %v", round, backendID(i), n, counts)
				}
			}
			for _, n := range w.nodes {
				if n.c.count.degraded.Load() > 0 {
					t.Errorf("%s decided %d alone", n.name, n.c.count.degraded.Load())
				}
				for len(n.held) > 0 {
					n.release(0)
				}
			}
			w.eventually("loads zero", time.Second, func() string { return w.loadsAgree(8) })
		}
	})
}

func TestADeadNodesLoadGoesAndItsSliceIsOwned(t *testing.T) {
	inBubble(t, 4, func(w *world) {
		w.start(3, 8, nil)
		w.eventually("together", 5*time.Second, w.together)
		for i := range 60 {
			w.nodes[i%3].reserve(8, -1)
		}
		w.eventually("loads agree", time.Second, func() string { return w.loadsAgree(8) })
		w.nodes[2].kill()
		gone := w.eventually("its load is gone", 2*time.Second, func() string { return w.loadsAgree(8) })
		owned := w.eventually("its slice is owned", 6*time.Second, w.together)
		t.Logf("load gone after %v, owned after %v", gone, owned)
		w.eventually("books exact", 3*time.Second, w.exact)
		w.nodes[2].restart(8)
		w.eventually("back", 8*time.Second, w.together)
		w.eventually("maps equal", 5*time.Second, w.sameMaps)
	})
}

func TestAStoppedOwnerDelaysNobodyBeyondTheBudget(t *testing.T) {
	inBubble(t, 5, func(w *world) {
		w.start(3, 8, nil)
		w.eventually("together", 5*time.Second, w.together)
		w.nodes[2].host.Pause()
		var longest time.Duration
		for i := range 400 {
			n := w.nodes[i%2]
			began := time.Now()
			n.reserve(8, i%8)
			longest = max(longest, time.Since(began))
			if len(n.held) > 20 {
				n.release(0)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if longest > (trust+1)*defaultBudget {
			t.Errorf("a request waited for %v", longest)
		}
		w.nodes[2].host.Resume()
		w.eventually("healed", 20*time.Second, w.together)
		w.eventually("books exact", 5*time.Second, w.exact)
		w.eventually("loads agree", 5*time.Second, func() string { return w.loadsAgree(8) })
	})
}

// A long budget is no longer than the owner's link.
func TestNoOwnerIsWaitedForLongerThanItsLink(t *testing.T) {
	inBubble(t, 27, func(w *world) {
		w.start(2, 8, func(c *Config) { c.OwnerBudget = time.Second })
		w.eventually("together", 5*time.Second, w.together)
		w.nodes[1].host.Pause()
		var longest time.Duration
		for range 50 {
			began := time.Now()
			w.nodes[0].reserve(8, -1)
			longest = max(longest, time.Since(began))
		}
		if longest > lease+100*time.Millisecond {
			t.Errorf("a request waited for %v", longest)
		}
		w.nodes[1].host.Resume()
		w.eventually("healed", 20*time.Second, w.together)
		w.eventually("books exact", 5*time.Second, w.exact)
	})
}

func TestAPartitionHeals(t *testing.T) {
	inBubble(t, 6, func(w *world) {
		w.start(3, 8, nil)
		w.eventually("together", 5*time.Second, w.together)
		w.net.Partition([]string{"n0", "n1"}, []string{"n2"})
		for i := range 300 {
			n := w.nodes[i%3]
			b, _ := n.reserve(8, -1)
			n.learn(b, path(uint64(100+i), 20))
			if len(n.held) > 5 {
				n.release(0)
			}
			time.Sleep(100 * time.Millisecond)
		}
		w.net.Heal()
		whole := w.eventually("together again", 20*time.Second, w.together)
		maps := w.eventually("maps equal", 20*time.Second-whole, w.sameMaps)
		w.eventually("books exact", 20*time.Second-whole-maps, w.exact)
		w.eventually("loads agree", time.Second, func() string { return w.loadsAgree(8) })
		t.Logf("together after %v, maps equal after %v more", whole, maps)
	})
}

func TestANewNodeIsReadyOnlyWhenItKnowsWhatOthersKnow(t *testing.T) {
	inBubble(t, 7, func(w *world) {
		w.start(2, 4, nil)
		w.eventually("together", 5*time.Second, w.together)
		for i := range 500 {
			w.nodes[i%2].learn(i%4, path(uint64(i), 60))
		}
		n := &testNode{w: w, name: "n2", host: w.net.Host("n2")}
		w.nodes = append(w.nodes, n)
		n.run(4)
		w.eventually("ready", 5*time.Second, func() string {
			if n.c.Ready() {
				return ""
			}
			return "not yet"
		})
		for i := range 500 {
			if got := n.matched(i%4, path(uint64(i), 60)); got != 60 {
				t.Fatalf("ready, and matches %d of 60 blocks of chain %d", got, i)
			}
		}
	})
}

func TestARestartedBackendIsEmptyEverywhere(t *testing.T) {
	inBubble(t, 8, func(w *world) {
		w.start(3, 4, nil)
		w.eventually("together", 5*time.Second, w.together)
		turn := path(9, 30)
		w.nodes[0].learn(1, turn)
		w.nodes[0].learn(2, turn)
		time.Sleep(100 * time.Millisecond)
		w.nodes[1].c.Restarted(w.nodes[1].fleet.slot("b1"))
		w.eventually("void everywhere", 2*time.Second, func() string {
			for _, n := range w.nodes {
				if n.matched(1, turn) != 0 || n.matched(2, turn) != 30 {
					return fmt.Sprintf("%s matches %d and %d", n.name, n.matched(1, turn), n.matched(2, turn))
				}
			}
			return ""
		})
		w.nodes[2].learn(1, turn)
		time.Sleep(17 * time.Second)                        // the metrics of an idle backend are read that seldom
		w.nodes[0].c.Restarted(w.nodes[0].fleet.slot("b1")) // the same restart, seen later
		w.nodes[2].c.Restarted(w.nodes[2].fleet.slot("b1"))
		time.Sleep(500 * time.Millisecond)
		for _, n := range w.nodes {
			if got := n.matched(1, turn); got != 30 {
				t.Errorf("%s matches %d of 30 blocks learned after the restart", n.name, got)
			}
			if got := n.c.Status().Generation("b1"); got != 1 {
				t.Errorf("%s counts generation %d for one restart", n.name, got)
			}
		}
	})
}

func TestBackendsAndDrainsAreLearned(t *testing.T) {
	inBubble(t, 9, func(w *world) {
		w.start(1, 3, nil)
		n0 := w.nodes[0]
		n := &testNode{w: w, name: "learner", host: w.net.Host("learner"), edit: func(c *Config) { c.LearnBackends = true }}
		w.nodes = append(w.nodes, n)
		n.run(0)
		w.eventually("learned", 5*time.Second, func() string {
			if got := n.fleet.Backends(); len(got) != 3 || !got[0].Learned {
				return fmt.Sprintf("%+v", got)
			}
			return ""
		})
		n0.c.Drained("b1", true)
		w.eventually("drained", 2*time.Second, func() string {
			n.fleet.mu.Lock()
			defer n.fleet.mu.Unlock()
			if !n.fleet.drained["b1"] {
				return "not drained"
			}
			return ""
		})
		n0.fleet.Remove("b2")
		w.eventually("removed", 2*time.Second, func() string {
			if got := n.fleet.Backends(); len(got) != 2 {
				return fmt.Sprintf("%+v", got)
			}
			return ""
		})
	})
}

func TestANameIsOneNodes(t *testing.T) {
	inBubble(t, 10, func(w *world) {
		w.start(2, 3, nil)
		w.eventually("together", 5*time.Second, w.together)
		double := &testNode{w: w, name: "n0", host: w.net.Host("double"), edit: func(c *Config) { c.LearnBackends = true }}
		w.nodes = append(w.nodes, double)
		double.run(0)
		time.Sleep(20 * time.Second)
		double.kill()
		if why := w.together(); why != "" {
			t.Errorf("a second n0 has parted the cluster: %s", why)
		}
		w.nodes[1].reserve(3, -1)
		if n := w.nodes[1].c.count.degraded.Load(); n != 0 {
			t.Errorf("%d degraded decisions", n)
		}
	})
}

func TestLearnedBackendsOutliveTheirGiver(t *testing.T) {
	inBubble(t, 11, func(w *world) {
		learns := func(c *Config) { c.LearnBackends = c.Node != "n0" }
		w.start(1, 3, learns)
		for _, name := range []string{"n1", "n2"} {
			n := &testNode{w: w, name: name, host: w.net.Host(name), edit: learns}
			w.nodes = append(w.nodes, n)
			n.run(0)
		}
		learned := func() string {
			for _, n := range w.nodes[1:] {
				if got := len(n.fleet.Backends()); got != 3 {
					return fmt.Sprintf("%s knows %d backends", n.name, got)
				}
			}
			return ""
		}
		w.eventually("learned", 5*time.Second, learned)
		w.nodes[0].kill()
		time.Sleep(time.Minute)
		w.nodes[1].c.FleetChanged()
		time.Sleep(time.Second)
		if why := learned(); why != "" {
			t.Errorf("a minute after the giver died %s", why)
		}
		w.nodes[0].restart(2)
		w.eventually("what the giver has no more is gone", 10*time.Second, func() string {
			for _, n := range w.nodes[1:] {
				if got := len(n.fleet.Backends()); got != 2 {
					return fmt.Sprintf("%s knows %d backends", n.name, got)
				}
			}
			return ""
		})
	})
}

func TestStatusTellsWhichSettingsDiffer(t *testing.T) {
	inBubble(t, 12, func(w *world) {
		w.start(2, 1, func(c *Config) { c.Settings = map[string]string{"policy": "cost", "ttl": c.Node} })
		w.eventually("told", 5*time.Second, func() string {
			for _, m := range w.nodes[0].c.Status().Members[1:] {
				if m.Differs != "ttl n1, here n0" {
					return fmt.Sprintf("it says %q", m.Differs)
				}
			}
			return w.together()
		})
	})
}

// Who came while no number was left is taken in once there is one.
func TestALeftOutNodeIsTakenInLater(t *testing.T) {
	inBubble(t, 26, func(w *world) {
		log := &lines{}
		w.log = slog.New(slog.NewTextHandler(log, nil))
		w.start(1, 4, nil)
		n0 := w.nodes[0]
		for i := 1; i < ledger.MaxHolders; i++ { // gone ones, whose leases are long
			p := n0.c.peers.meet(fmt.Sprint("gone-", i))
			p.mu.Lock()
			p.leased, p.last = true, n0.c.cfg.Now()+20*time.Second
			p.mu.Unlock()
		}
		n1 := &testNode{w: w, name: "n1", host: w.net.Host("n1")}
		w.nodes = append(w.nodes, n1)
		n1.run(4)
		time.Sleep(15 * time.Second)
		if w.together() == "" {
			t.Fatal("there was a number left")
		}
		if n := log.count("level=ERROR"); n != 1 {
			t.Errorf("that a node is left out was said %d times, want once", n)
		}
		w.eventually("together", 15*time.Second, w.together)
	})
}
