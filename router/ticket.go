package router

import (
	"sync"
	"time"

	"kvca/state/ledger"
)

// Ticket is one reservation and what is still owed for it. Its methods may be
// called from any goroutine; each step is taken at most once.
type Ticket struct {
	// Decision is how the backend was chosen.
	Decision Decision
	// Backend is where the request goes.
	Backend *Backend

	router     *Router
	model      *model
	chain      []uint64
	mark       uint64 // of the whole request, 0 for none
	before     uint64 // of the request before, where this backend served it
	id         ledger.ID
	generation uint64
	bytes      int64
	matched    int   // blocks of the chain that it was believed to hold
	predicted  int64 // tokens that the index said it holds, unpredicted without it
	teaches    bool  // a success is worth learning

	mu       sync.Mutex
	begun    bool
	over     bool
	expected bool // the chain is tentatively the backend's
	// announced is whether peers were told of the chain from the block known on.
	announced bool
	known     int
}

// unpredicted is a prediction that was not made.
const unpredicted = -1

// Predicted is how many tokens of the prompt the index said that the backend holds;
// false where it was not asked for the whole of it.
func (t *Ticket) Predicted() (tokens int64, ok bool) { return t.predicted, t.predicted >= 0 }

// Begin records that the backend has begun a successful response: its locations
// are learned and the novel-block load is given back. It does nothing on a
// closed ticket, or the second time.
func (t *Ticket) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun || t.over {
		return
	}
	t.begun = true
	if t.teaches {
		t.learn(t.router.now())
	}
	t.unexpect()
	t.router.loads.Prefilled(t.id)
}

// learn learns the chain with the request's own mark behind it, so that the mark
// counts as one of the continuations of its last block and is evicted before it.
// The mark of the request before has done its work: dropped, it is no longer
// taken for another conversation that shares the prefix.
func (t *Ticket) learn(now time.Duration) {
	l, slot := t.router.locations, t.Backend.Slot
	if t.announced {
		t.router.teller.Confirm(slot, t.generation, t.marked(), now)
	} else {
		l.Learn(slot, t.generation, t.marked(), now)
	}
	if t.before != 0 && t.mark != 0 && t.before != t.mark {
		l.Forget(slot, []uint64{t.before}, 0)
	}
}

// marked is the chain with the request's mark behind it, if it has one.
func (t *Ticket) marked() []uint64 {
	if t.mark == 0 {
		return t.chain
	}
	return append(t.chain, t.mark)
}

// announce tells the peers what the backend is about to hold, where that is
// anything new.
func (t *Ticket) announce(known int) {
	r := t.router
	if r.teller == nil || !t.teaches || known == len(t.chain) && (t.mark == 0 || r.holds(t.Backend.Slot, t.mark)) {
		return
	}
	t.known = known
	t.announced = r.teller.Announce(t.Backend.Slot, t.generation, t.marked(), known)
}

// Close ends the request, however it ended, and gives back all that is still
// booked for it. After the first call it does nothing.
func (t *Ticket) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	t.unexpect()
	if t.announced && !t.begun {
		t.router.teller.Retract(t.Backend.Slot, t.generation, t.marked(), t.known)
	}
	t.router.loads.Release(t.id)
}

// Observe tells what the engine reported of the prompt: its length and how much
// of it came from the cache, in tokens; cached is -1 where it did not say.
func (t *Ticket) Observe(prompt, cached int64) { t.router.observe(t, prompt, cached) }

func (t *Ticket) unexpect() {
	if t.expected {
		t.expected = false
		t.router.locations.Unexpect(t.Backend.Slot, t.chain)
	}
}

// Spent is whether the chain is not needed any more: what it teaches has been
// learned, or it teaches nothing.
func (t *Ticket) Spent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.expected && (t.begun || t.over || !t.teaches)
}
