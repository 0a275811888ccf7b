package cluster

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"kvca/state/kvindex"
	"kvca/state/virtualtime"
)

// driven is an engine with a life of its own: it changes while its feeds come and go.
type driven struct {
	truth
	mu    sync.Mutex
	rng   *rand.Rand
	feeds map[*testNode]*Feed
}

func (d *driven) live(steps int) {
	for range steps {
		d.mu.Lock()
		var feeds []*Feed
		for _, f := range d.feeds {
			feeds = append(feeds, f)
		}
		blocks := 20
		if d.rng.IntN(10) == 0 {
			blocks = 2000
		}
		d.change(d.rng, blocks, feeds)
		pause := time.Duration(d.rng.IntN(8)) * time.Millisecond
		d.mu.Unlock()
		time.Sleep(pause)
	}
}

// read has a node read the engine, or no longer.
func (d *driven) read(t *testing.T, n *testNode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.feeds[n]; f != nil {
		delete(d.feeds, n)
		f.Close()
		return
	}
	f, err := n.c.Feed(d.backend, d.rank, "m")
	if err != nil {
		t.Fatal(err)
	}
	d.fill(f)
	d.feeds[n] = f
}

func (d *driven) lose(n *testNode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.feeds, n)
}

// The same as with Stepped nodes, with goroutines, links and clocks: engines change
// while their blocks are copied.
func TestSourcesAgreeAfterRandomFaults(t *testing.T) {
	seeds := uint64(12)
	if virtualtime.Raced {
		seeds = 6
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		if *oneSchedule != 0 && seed != *oneSchedule {
			continue
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			inBubble(t, seed, func(w *world) { sourcesUnderFaults(newSchedule(w)) })
		})
	}
}

func sourcesUnderFaults(s *schedule) {
	s.backends = 3
	s.net.SetStreams(s.span(2*time.Millisecond), s.span(3*time.Millisecond))
	s.start(2+s.rng.IntN(2), s.backends, func(c *Config) { c.Index = testIndex() })
	s.eventually("together", 20*time.Second, s.together)
	var engines []*driven
	var lives sync.WaitGroup
	for b := range s.backends {
		d := &driven{
			truth: truth{backend: backendID(b), runs: make(map[uint64]*kvindex.Stored)},
			rng:   rand.New(rand.NewPCG(s.rng.Uint64(), 9)), feeds: make(map[*testNode]*Feed),
		}
		engines = append(engines, d)
		d.read(s.t, s.nodes[s.rng.IntN(len(s.nodes))])
		lives.Go(func() { d.live(400) })
	}
	for range 40 {
		s.sourceFault(engines)
		time.Sleep(s.span(80 * time.Millisecond))
	}
	lives.Wait()
	s.repair()
	s.eventually("together again", 40*time.Second, s.together)
	s.eventually("sources agree", 60*time.Second, func() string {
		for _, d := range engines {
			for _, n := range s.nodes {
				if why := d.agrees(n.c, len(d.feeds) > 0); why != "" {
					return fmt.Sprintf("%s; what happened: %q", why, s.happened)
				}
			}
		}
		return ""
	})
}

func (s *schedule) sourceFault(engines []*driven) {
	living := s.living()
	n := living[s.rng.IntN(len(living))]
	switch dice := s.rng.IntN(20); {
	case dice < 6:
		d := engines[s.rng.IntN(len(engines))]
		s.note("%s turns to %s", n.name, d.backend)
		d.read(s.t, n)
	case dice < 10:
		other := living[s.rng.IntN(len(living))]
		s.note("cut %s %s", n.name, other.name)
		s.net.CutStreams(n.name, other.name)
	case dice < 12 && len(living) > 1 && !s.paused[n]:
		for _, d := range engines {
			d.lose(n)
		}
		s.die(n)
	case dice < 15:
		s.revive()
	case dice < 17:
		s.pause(n)
	case dice < 18:
		s.part()
	}
}
