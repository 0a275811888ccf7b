package ledger

import (
	"sync"

	"kvca/state"
)

// MaxHeld bounds the live reservations of this node, and again those of all
// peers together, so that no peer can take the room for this node's own. Each
// takes about 100 bytes; a gateway runs out of sockets long before it gets here.
const MaxHeld = 1 << 20

// ID names one reservation: 128 random bits, chosen by the routing node.
type ID [2]uint64

// Counters count what the ledger did since it was made.
type Counters struct {
	Granted  uint64 // reservations booked here for this node's own requests
	ForPeers uint64 // reservations booked here for peers
	Adopted  uint64 // holds taken over as their holder told them: granted elsewhere, or lost here
	Late     uint64 // not booked, because they came after their own release
	Full     uint64 // not booked, because MaxHeld were live
}

func (c *Counters) granted(h Holder) {
	if h == Self {
		c.Granted++
	} else {
		c.ForPeers++
	}
}

// Ledger is the load of every backend and the reservations it consists of. Its
// methods may be called from any goroutine.
type Ledger struct {
	mu       sync.Mutex
	views    []Load // by slot: all that choosing reads
	rows     []row  // by slot: what a view is made of
	holders  [MaxHolders]*holder
	forPeers int          // live holds of all peers
	changed  []state.Slot // where Self's subtotal may have changed since Changes
	noted    []state.Slot // where a note may be live
	released recent
	counters Counters
}

// New returns an empty ledger, in which this node owns every backend.
func New() *Ledger {
	l := &Ledger{released: newRecent()}
	l.holders[Self] = newHolder()
	return l
}

// Load is the load of the backend in slot s as seen here: what this node holds,
// and what is known of others.
func (l *Ledger) Load(s state.Slot) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return at(l.views, s)
}

// Own is the part of Load that this node itself holds.
func (l *Ledger) Own(s state.Slot) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return at(l.holders[Self].booked, s)
}

// Held is the number of live reservations of this node.
func (l *Ledger) Held() int { return l.HeldBy(Self) }

// HeldBy is the number of live reservations of h that are booked here.
func (l *Ledger) HeldBy(h Holder) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.known(h); t != nil {
		return len(t.holds)
	}
	return 0
}

// Counters are the counts since the ledger was made.
func (l *Ledger) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counters
}

// Reset makes slot s a new backend without load, whoever held or told what. What
// is still held of the one before is given back to nobody. The role stays.
func (l *Ledger) Reset(s state.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.row(s)
	if at(l.holders[Self].booked, s) != (Load{}) || r.sent != (Load{}) {
		r.sent = neverSent
		l.markChanged(s)
	}
	for _, t := range l.holders {
		if t != nil {
			t.forget(s)
		}
	}
	r.granted, r.told, r.noteLeft = Load{}, Load{}, 0
	r.incarnation++
	l.look(s)
}
