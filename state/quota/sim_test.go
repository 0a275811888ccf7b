package quota

import (
	"math/rand/v2"
	"time"
)

// sim is one key at many nodes, step by step. Node 0 is the owner. A message takes a
// step, and a request that waits for an answer longer than patience is refused.
type sim struct {
	rng     *rand.Rand
	now     time.Duration
	limit   Limit
	owner   *Owner
	nodes   []*simNode
	mail    []func() // delivered with the next step
	service time.Duration
	cost    func() (estimate, actual int64)

	admitted  []int
	tokens    int64 // actual ones, of all that were admitted
	inUse     int
	mostInUse int
	slotTime  time.Duration // requests under way, over time
}

type simNode struct {
	hold    Holder
	pending []pending
	ends    []ending
	rate    float64 // of arrivals
	next    float64 // arrivals that are due, less one
	asks    int
}

type pending struct {
	tokens, actual int64
	until          time.Duration
}

type ending struct {
	at     time.Duration
	settle int64
}

const (
	step     = time.Millisecond
	patience = 24 * time.Millisecond
)

func newSim(seed uint64, nodes int, l Limit) *sim {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 1)), now: time.Hour, limit: l, owner: NewOwner(time.Hour), admitted: make([]int, nodes)}
	s.owner.Learned()
	s.cost = func() (int64, int64) { return 1, 1 }
	for range nodes {
		s.nodes = append(s.nodes, &simNode{next: -s.rng.ExpFloat64()})
	}
	return s
}

// run plays for so long, with arrivals at the nodes' rates.
func (s *sim) run(span time.Duration) {
	for end := s.now + span; s.now < end; {
		s.now += step
		mail := s.mail
		s.mail = nil
		for _, deliver := range mail {
			deliver()
		}
		for _, i := range s.rng.Perm(len(s.nodes)) {
			s.turn(i)
		}
		s.slotTime += time.Duration(s.inUse) * step
		s.mostInUse = max(s.mostInUse, s.inUse)
	}
}

func (s *sim) turn(i int) {
	n := s.nodes[i]
	keep := n.ends[:0]
	for _, e := range n.ends {
		if s.now < e.at {
			keep = append(keep, e)
			continue
		}
		s.inUse--
		n.hold.Settle(s.now, e.settle)
		if urgent := n.hold.Release(s.now); urgent || i == Self {
			s.giveBack(i)
		}
	}
	n.ends = keep
	for n.next += n.rate * step.Seconds(); n.next >= 0; n.next -= s.rng.ExpFloat64() {
		estimate, actual := s.cost()
		n.hold.Demand(s.now, s.limit, estimate)
		n.pending = append(n.pending, pending{estimate, actual, s.now + patience})
	}
	waiting := n.pending[:0]
	for _, p := range n.pending {
		if !s.try(i, p) && s.now < p.until {
			if _, refused := n.hold.Refused(s.now, p.tokens); !refused {
				waiting = append(waiting, p)
			}
		}
	}
	n.pending = waiting
	if s.now%(50*step) == 0 {
		s.giveBack(i)
	}
}

func (s *sim) giveBack(i int) {
	h := &s.nodes[i].hold
	if i == Self {
		r := h.ReturnSlots()
		s.owner.Told(s.now, Self, &r)
		if s.now%(50*step) == 0 {
			r, _ = h.Return(s.now)
			s.owner.Told(s.now, Self, &r)
		}
	} else if r, ok := h.Return(s.now); ok {
		s.mail = append(s.mail, func() { s.owner.Told(s.now, uint8(i), &r) })
	}
}

func (s *sim) try(i int, p pending) bool {
	n := s.nodes[i]
	if !n.hold.Take(s.now, p.tokens) {
		if _, refused := n.hold.Refused(s.now, p.tokens); refused || n.hold.Asking() {
			return false
		}
		s.ask(i, p.tokens)
		if i != Self || !n.hold.Take(s.now, p.tokens) {
			return false
		}
	} else if i != Self && n.hold.Low(s.now) {
		s.ask(i, 0)
	}
	s.admitted[i]++
	s.tokens += p.actual
	s.inUse++
	n.ends = append(n.ends, ending{s.now + s.service, p.actual - p.tokens})
	return true
}

func (s *sim) ask(i int, tokens int64) {
	n := s.nodes[i]
	n.asks++
	a := n.hold.Ask(s.now, tokens, Amount{Requests: int64(len(n.pending)), Slots: len(n.pending)})
	if i == Self {
		a.Want.Slots = a.Need.Slots
		g := s.owner.Grant(s.now, Self, &a)
		n.hold.Apply(s.now, &g)
		s.recall()
		return
	}
	s.mail = append(s.mail, func() {
		g := s.owner.Grant(s.now, uint8(i), &a)
		s.mail = append(s.mail, func() { n.hold.Apply(s.now, &g) })
		s.recall()
	})
}

func (s *sim) recall() {
	for _, h := range s.owner.Recall(nil) {
		s.mail = append(s.mail, func() {
			s.nodes[h].hold.Recalled(s.now)
			s.giveBack(int(h))
		})
	}
}

func (s *sim) total() (n int) {
	for _, a := range s.admitted {
		n += a
	}
	return n
}

// reset begins to count.
func (s *sim) reset() {
	clear(s.admitted)
	s.tokens, s.slotTime, s.mostInUse = 0, 0, 0
}

// share gives each node its part of an offered rate.
func (s *sim) share(rate float64, parts ...float64) {
	sum := 0.0
	for _, p := range parts {
		sum += p
	}
	for i, n := range s.nodes {
		n.rate = rate * parts[i] / sum
	}
}

var (
	evenly    = []float64{1, 1, 1, 1, 1, 1, 1, 1}
	onOne     = []float64{0, 0, 0, 1, 0, 0, 0, 0}
	onOwner   = []float64{1, 0, 0, 0, 0, 0, 0, 0}
	mostlyOne = []float64{0.05, 0.05, 0.6, 0.05, 0.05, 0.1, 0.05, 0.05}
)
