package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"kvca/router"
	"kvca/state/cbr"
	"kvca/state/chain"
	"kvca/state/virtualtime"
)

// front is a node with the product's router on it.
type front struct {
	*testNode
	router  *router.Router
	members []*router.Backend
}

// fronts gives every node a router and the same backends.
func (w *world) fronts(backends int) (list []*front) {
	for _, n := range w.nodes {
		cfg := router.DefaultConfig()
		cfg.Now, cfg.Rand = n.c.cfg.Now, n.c.cfg.Rand
		r, err := router.New(cfg, n.loads, n.locs)
		if err != nil {
			w.t.Fatal(err)
		}
		f := &front{testNode: n, router: r}
		for i := range backends {
			b, err := r.Add(backendID(i))
			if err != nil {
				w.t.Fatal(err)
			}
			n.c.Open(b.Slot, backendID(i))
			b.SetStanding(router.Available)
			f.members = append(f.members, b)
		}
		list = append(list, f)
	}
	return list
}

// tally is what a run came to.
type tally struct {
	mu          sync.Mutex
	kept, turns int
	served      map[string]int
}

// talks holds conversations of five turns, so many at once, each turn to a random
// node, on backends that answer in 30 ms give or take a tenth; the next turn
// comes a millisecond after the answer.
func (w *world) talks(fronts []*front, conversations, atOnce, shared, turn int) (kept, most float64) {
	t := &tally{served: map[string]int{}}
	prompt := w.text(shared)
	next := make(chan int, conversations)
	for i := range conversations {
		next <- i
	}
	close(next)
	var players sync.WaitGroup
	for i := range atOnce {
		seed := w.rng.Uint64()
		players.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond / 10)
			for range next {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				seed++
				talkOnce(t, rng, fronts, prompt, turn)
			}
		})
	}
	players.Wait()
	busiest := 0
	for _, n := range t.served {
		busiest = max(busiest, n)
	}
	return float64(t.kept) / float64(t.turns), float64(busiest*len(fronts[0].members)) / float64(t.turns+conversations)
}

func talkOnce(t *tally, rng *rand.Rand, fronts []*front, prompt []byte, turn int) {
	history, last := [][]byte{prompt}, ""
	for i := range 5 {
		history = append(history, randomText(rng, turn))
		f := fronts[rng.IntN(len(fronts))]
		ticket, err := f.router.Route(context.Background(), ask(i > 0, history), f.members)
		if err != nil {
			f.w.t.Error(err)
			return
		}
		time.Sleep(27*time.Millisecond + time.Duration(rng.Int64N(int64(6*time.Millisecond))))
		ticket.Begin()
		ticket.Close()
		t.mu.Lock()
		t.served[ticket.Backend.ID]++
		if i > 0 {
			t.turns++
			if ticket.Backend.ID == last {
				t.kept++
			}
		}
		t.mu.Unlock()
		last = ticket.Backend.ID
		history = append(history, []byte("an answer"))
		time.Sleep(time.Millisecond)
	}
}

func ask(followUp bool, messages [][]byte) *router.Request {
	var h chain.Hasher
	h.Reset(chain.Key{K0: 1, K1: 2}, 512)
	for _, m := range messages {
		h.Write(m)
		h.Mark()
	}
	phase := cbr.Bootstrap
	if followUp {
		phase = cbr.FollowUp
	}
	return &router.Request{Model: "m", Phase: phase, Chain: slices.Clone(h.Hashes()), Marks: slices.Clone(h.Marks()), Bytes: h.Bytes()}
}

func (w *world) text(n int) []byte { return randomText(w.rng, n) }

func randomText(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rng.IntN(26))
	}
	return b
}

// The affinity table for clusters: with every turn to a random node, follow-ups
// stay where the turn before was served, and load spreads.
func TestFollowUpsStayOverManyNodes(t *testing.T) {
	counts, seeds := []int{1, 3, 8}, uint64(3)
	if virtualtime.Raced {
		counts, seeds = []int{3, 8}, 1
	}
	for _, nodes := range counts {
		for _, c := range []struct {
			atOnce, shared, turn int
			kept, most           float64
		}{
			{32, 0, 800, 0.98, 1.1},
			{32, 4096, 800, 0.98, 1.25},
			{32, 4096, 200, 0.98, 1.25},
		} {
			t.Run(fmt.Sprintf("%d nodes, %d at once, %d shared, turns of %d", nodes, c.atOnce, c.shared, c.turn), func(t *testing.T) {
				var kept, most []float64
				for seed := range seeds {
					inBubble(t, 40+seed, func(w *world) {
						w.net.SetStreams(100*time.Microsecond, 100*time.Microsecond)
						w.start(nodes, 0, nil)
						w.eventually("together", 10*time.Second, w.together)
						k, m := w.talks(w.fronts(8), 400, c.atOnce, c.shared, c.turn)
						kept, most = append(kept, k), append(most, m)
						for _, n := range w.nodes {
							if d := n.c.count.degraded.Load(); d > 0 {
								t.Errorf("%s decided %d times alone", n.name, d)
							}
						}
						time.Sleep(time.Second)
						if why := w.loadsAgree(0); why != "" {
							t.Error(why)
						}
					})
				}
				slices.Sort(kept)
				slices.Sort(most)
				middle := len(kept) / 2
				t.Logf("kept %.3f, max/mean %.2f (medians of %d)", kept[middle], most[middle], seeds)
				if !virtualtime.Raced && (kept[middle] < c.kept || most[middle] > c.most) {
					t.Errorf("kept %v, want %v or more; max/mean %v, want %v at most", kept, c.kept, most, c.most)
				}
			})
		}
	}
}

func TestWhatComesToNothingIsRetracted(t *testing.T) {
	inBubble(t, 60, func(w *world) {
		w.start(3, 0, nil)
		w.eventually("together", 10*time.Second, w.together)
		fronts := w.fronts(4)
		req := ask(false, [][]byte{w.text(8000)})
		ticket, err := fronts[0].router.Route(context.Background(), req, fronts[0].members)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		matched := func(f *front) int {
			d, err := f.router.Explain(req, f.members)
			if err != nil {
				t.Fatal(err)
			}
			return d.MatchedBlocks
		}
		if got := matched(fronts[1]); got != 15 {
			t.Errorf("a peer matches %d of 15 blocks of a request under way", got)
		}
		ticket.Close()
		time.Sleep(50 * time.Millisecond)
		for _, f := range fronts {
			if got := matched(f); got != 0 {
				t.Errorf("%s matches %d blocks of a request that failed", f.name, got)
			}
		}
		w.eventually("loads agree", time.Second, func() string { return w.loadsAgree(4) })
	})
}
