package ledger

import "kvca/state"

// Held is one live reservation as its holder knows it.
type Held struct {
	ID        ID
	Slot      state.Slot
	Novel     int64 // bytes of CBR
	Prefilled bool
}

// Replace makes the ledger hold exactly what its holder says it holds: a lost
// release, a reservation booked twice and a ledger that started empty all heal
// by it. It replaces, it never adds. At most MaxHeld entries are taken.
func (l *Ledger) Replace(held []Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.holds {
		l.giveBack(h)
	}
	clear(l.holds)
	for _, h := range held {
		if len(l.holds) >= MaxHeld {
			return
		}
		if _, twice := l.holds[h.ID]; twice {
			continue
		}
		n := hold{novel: max(h.Novel, 0), slot: h.Slot, prefilled: h.Prefilled, incarnation: l.row(h.Slot).incarnation}
		l.holds[h.ID] = n
		l.book(n)
	}
}
