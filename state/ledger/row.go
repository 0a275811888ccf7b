package ledger

import "kvca/state"

// Role is what this node is to one backend. It decides whose word counts for
// what others hold there.
type Role uint8

const (
	// Owner is the one node that grants reservations on the backend: what it
	// granted is what others hold. A lone node owns all.
	Owner Role = iota
	// Learning is an owner of late, to whom holders have yet to say what the
	// owner before granted: others hold the greater of granted and told.
	Learning
	// Follower asks the owner: others hold what the owner noted lately, else
	// what the peers told.
	Follower
)

// noteEpochs is at which NextEpoch after it a note expires.
const noteEpochs = 2

// neverSent is no subtotal, so that the next one counts as changed.
var neverSent = Load{-1, -1}

// row is what is known of one slot, apart from what each holder holds. The
// incarnation tells a backend from an earlier one in the same slot: holds of an
// earlier one no longer count.
type row struct {
	granted     Load // sum of what peers hold here
	told        Load // sum of what peers told of themselves
	note        Load // what the owner said of others
	sent        Load // Self's subtotal at the last Changes
	incarnation uint32
	role        Role
	noteLeft    uint8 // epochs that the note has still to live
	noted       bool  // on Ledger.noted
	changed     bool  // on Ledger.changed
}

// others is the load beyond this node's own.
func (r *row) others() Load {
	switch {
	case r.role == Owner:
		return r.granted
	case r.role == Learning:
		return r.granted.greater(r.told)
	case r.noteLeft > 0:
		return r.note
	default:
		return r.told
	}
}

// SetRole says what this node is to the backend in slot s from now on.
func (l *Ledger) SetRole(s state.Slot, role Role) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.row(s).role = role
	l.look(s)
}

// row returns slot s's row, growing the tables; the caller holds the lock.
func (l *Ledger) row(s state.Slot) *row {
	if int(s) >= len(l.rows) {
		l.rows, l.views = grown(l.rows, s), grown(l.views, s)
	}
	return &l.rows[s]
}

// look renews the view of slot s, which has a row. It follows every change.
func (l *Ledger) look(s state.Slot) {
	l.views[s] = at(l.holders[Self].booked, s).plus(l.rows[s].others())
}
