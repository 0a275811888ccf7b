package ledger

import (
	"sync"

	"kvca/state"
)

// MaxHeld bounds the live reservations of one ledger. Each takes about 100
// bytes; a gateway runs out of sockets long before it gets here.
const MaxHeld = 1 << 20

// ID names one reservation: 128 random bits, chosen by the routing node.
type ID [2]uint64

// Load is what is reserved on one backend.
type Load struct {
	// Novel is the novel-block load in bytes of CBR: prefill work that was
	// routed and has not begun to be answered.
	Novel int64
	// Active is the number of requests that were routed and are not over.
	Active int64
}

// Bytes is the load in bytes of CBR, an active request counting activeBytes.
func (l Load) Bytes(activeBytes float64) float64 {
	return float64(l.Novel) + activeBytes*float64(l.Active)
}

// Counters count what the ledger did since it was made.
type Counters struct {
	Granted uint64 // reservations booked
	Late    uint64 // reservations that came after their own release: not booked
	Full    uint64 // reservations not booked because MaxHeld were live
}

// Ledger is the load of every backend and the reservations it consists of. Its
// methods may be called from any goroutine.
type Ledger struct {
	mu       sync.Mutex
	rows     []row // by slot
	holds    map[ID]hold
	released recent
	counters Counters
}

// row is one slot's total. The incarnation tells a backend from an earlier one
// in the same slot: holds of an earlier one no longer count.
type row struct {
	Load
	incarnation uint32
}

type hold struct {
	novel       int64
	incarnation uint32
	slot        state.Slot
	prefilled   bool
}

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{holds: make(map[ID]hold), released: newRecent()}
}

// Prefilled gives back the novel-block load of a reservation: its backend has
// begun to respond. It returns false where there was none left to give back.
func (l *Ledger) Prefilled(id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.holds[id]
	if !ok || h.prefilled {
		return false
	}
	if r := l.rowOf(h); r != nil {
		r.Novel -= h.novel
	}
	h.prefilled = true
	l.holds[id] = h
	return true
}

// Release gives back all that a reservation still holds, and remembers the id so
// that a Reserve which comes later books nothing. It returns false where the id
// was unknown, which is no error.
func (l *Ledger) Release(id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released.add(id)
	h, ok := l.holds[id]
	if !ok {
		return false
	}
	l.giveBack(h)
	delete(l.holds, id)
	return true
}

// Load is what is reserved on the backend in slot s.
func (l *Ledger) Load(s state.Slot) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(s) >= len(l.rows) {
		return Load{}
	}
	return l.rows[s].Load
}

// Held is the number of live reservations.
func (l *Ledger) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.holds)
}

// Counters are the counts since the ledger was made.
func (l *Ledger) Counters() Counters {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counters
}

// Reset makes slot s a new backend without load. What is still held of the one
// before is given back to nobody.
func (l *Ledger) Reset(s state.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.row(s)
	*r = row{incarnation: r.incarnation + 1}
}

// row returns slot s's row, growing the table; the caller holds the lock.
func (l *Ledger) row(s state.Slot) *row {
	for int(s) >= len(l.rows) {
		l.rows = append(l.rows, row{})
	}
	return &l.rows[s]
}

// rowOf returns the row that h is booked on, nil when its backend is gone.
func (l *Ledger) rowOf(h hold) *row {
	if r := &l.rows[h.slot]; r.incarnation == h.incarnation {
		return r
	}
	return nil
}

// book adds h to its row; the caller holds the lock and stores h.
func (l *Ledger) book(h hold) {
	if r := l.rowOf(h); r != nil {
		r.Active++
		if !h.prefilled {
			r.Novel += h.novel
		}
	}
}

// giveBack undoes book.
func (l *Ledger) giveBack(h hold) {
	if r := l.rowOf(h); r != nil {
		r.Active--
		if !h.prefilled {
			r.Novel -= h.novel
		}
	}
}
