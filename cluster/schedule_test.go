package cluster

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

// Random schedules: requests and faults in any order. Whatever happened, when it
// is over the nodes are one cluster again: maps equal, books exact, loads zero
// at rest.
//
// To see one again: go test ./cluster -run Schedules -schedule SEED.
var oneSchedule = flag.Uint64("schedule", 0, "run only the schedule of this seed")

const schedules = 120

func TestSchedules(t *testing.T) {
	first, last := uint64(1), uint64(schedules)
	if *oneSchedule != 0 {
		first, last = *oneSchedule, *oneSchedule
	}
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			inBubble(t, seed, func(w *world) { newSchedule(w).play() })
		})
	}
}

// schedule is one story.
type schedule struct {
	*world
	backends int
	talks    []talk
	parted   bool
	paused   map[*testNode]bool
	happened []string
}

// talk is a conversation: its chain so far and who holds it.
type talk struct {
	chain  []uint64
	holder int
}

func newSchedule(w *world) *schedule {
	return &schedule{world: w, backends: 3 + w.rng.IntN(6), paused: make(map[*testNode]bool)}
}

func (s *schedule) span(most time.Duration) time.Duration {
	return time.Duration(s.rng.Int64N(int64(most)))
}

func (s *schedule) play() {
	s.net.SetPackets(0.1*s.rng.Float64(), 0.05, 0.05, s.span(10*time.Millisecond), s.span(20*time.Millisecond))
	s.net.SetStreams(s.span(2*time.Millisecond), s.span(3*time.Millisecond))
	s.start(2+s.rng.IntN(3), s.backends, nil)
	if s.chance(70) {
		s.eventually("together", 20*time.Second, s.together)
	}
	for range 60 + s.rng.IntN(60) {
		s.step()
	}
	s.repair()
	s.check()
}

func (s *schedule) step() {
	living := s.living()
	n := living[s.rng.IntN(len(living))]
	switch dice := s.rng.IntN(100); {
	case dice < 45:
		s.request(n)
	case dice < 65:
		if len(n.held) > 0 {
			n.release(s.rng.IntN(len(n.held)))
		}
	case dice < 75:
		if len(n.held) > 0 {
			n.loads.Prefilled(n.held[s.rng.IntN(len(n.held))])
		}
	case dice < 78:
		s.die(n)
	case dice < 81:
		s.revive()
	case dice < 84:
		s.pause(n)
	case dice < 87:
		s.part()
	case dice < 90:
		other := living[s.rng.IntN(len(living))]
		s.note("cut %s %s", n.name, other.name)
		s.net.CutStreams(n.name, other.name)
	case dice < 91:
		b := s.rng.IntN(s.backends)
		s.note("backend b%d restarts", b)
		n.c.Restarted(n.fleet.slot(backendID(b)))
	default:
		time.Sleep(s.span(700 * time.Millisecond))
	}
	if s.chance(30) {
		time.Sleep(s.span(60 * time.Millisecond))
	}
}

func (s *schedule) note(format string, args ...any) {
	s.happened = append(s.happened, fmt.Sprintf(format, args...))
}

// request is one turn of some conversation.
func (s *schedule) request(n *testNode) {
	if len(s.talks) == 0 || s.chance(30) {
		s.talks = append(s.talks, talk{holder: -1})
	}
	t := &s.talks[s.rng.IntN(len(s.talks))]
	t.holder, _ = n.reserve(s.backends, t.holder)
	t.chain = append(t.chain, path(s.rng.Uint64(), 1+s.rng.IntN(20))...)
	if s.chance(80) {
		n.learn(t.holder, t.chain)
	}
}

func (s *schedule) die(n *testNode) {
	if len(s.living()) < 2 {
		return
	}
	s.note("%s dies", n.name)
	if s.paused[n] {
		n.host.Resume()
		delete(s.paused, n)
	}
	n.kill()
}

func (s *schedule) revive() {
	for _, n := range s.nodes {
		if !n.alive {
			s.note("%s returns", n.name)
			n.restart(s.backends)
			return
		}
	}
}

func (s *schedule) pause(n *testNode) {
	if s.paused[n] {
		s.note("%s goes on", n.name)
		n.host.Resume()
		delete(s.paused, n)
		return
	}
	s.note("%s stops", n.name)
	n.host.Pause()
	s.paused[n] = true
}

func (s *schedule) part() {
	if s.parted {
		s.note("whole")
		s.net.Heal()
		s.parted = false
		return
	}
	var one, other []string
	for _, n := range s.nodes {
		if s.chance(50) {
			one = append(one, n.name)
		} else {
			other = append(other, n.name)
		}
	}
	s.note("parted %v %v", one, other)
	s.net.Partition(one, other)
	s.parted = true
}

func (s *schedule) repair() {
	s.net.Heal()
	s.net.SetPackets(0.01, 0, 0, time.Millisecond, time.Millisecond)
	for n := range s.paused {
		n.host.Resume()
	}
	for _, n := range s.nodes {
		if !n.alive {
			n.restart(s.backends)
		}
	}
}

func (s *schedule) check() {
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%d backends, %d nodes; what happened: %q", s.backends, len(s.nodes), s.happened)
		}
	}()
	s.eventually("together again", 40*time.Second, s.together)
	s.eventually("maps equal", 30*time.Second, s.sameMaps)
	s.eventually("books exact", 10*time.Second, s.exact)
	agree := func() string { return s.loadsAgree(s.backends) }
	s.eventually("loads agree", 5*time.Second, agree)
	for _, n := range s.nodes {
		for len(n.held) > 0 {
			n.release(0)
		}
	}
	s.eventually("loads agree at rest", 5*time.Second, agree)
	for _, n := range s.nodes {
		for i := range s.backends {
			if got := n.loads.Load(n.fleet.slot(backendID(i))); got.Active != 0 || got.Novel != 0 {
				s.t.Errorf("%s ends with %+v on b%d", n.name, got, i)
			}
		}
	}
}
