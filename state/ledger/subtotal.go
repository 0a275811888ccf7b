package ledger

import "kvca/state"

// Subtotal is what this node itself holds on one backend.
type Subtotal struct {
	Slot state.Slot
	Load
}

// Changes appends the subtotals that are no longer what the last call returned.
func (l *Ledger) Changes(dst []Subtotal) []Subtotal {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.changed {
		r, own := &l.rows[s], at(l.holders[Self].booked, s)
		r.changed = false
		if own != r.sent {
			r.sent = own
			dst = append(dst, Subtotal{s, own})
		}
	}
	l.changed = l.changed[:0]
	return dst
}

// Subtotals appends all subtotals that are not zero, as the last call of Changes
// left them: what has changed since comes with the next, and what is back by then
// at what it was need not be told.
func (l *Ledger) Subtotals(dst []Subtotal) []Subtotal {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.rows {
		if sent := l.rows[s].sent; sent != (Load{}) {
			dst = append(dst, Subtotal{state.Slot(s), sent})
		}
	}
	return dst
}

// markChanged puts slot s, which has a row, among those that Changes looks at.
// There are never more of them than slots, also where nobody asks.
func (l *Ledger) markChanged(s state.Slot) {
	if r := &l.rows[s]; !r.changed {
		r.changed = true
		l.changed = append(l.changed, s)
	}
}
