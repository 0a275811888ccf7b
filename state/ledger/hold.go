package ledger

import "kvca/state"

// hold is one live reservation: 16 bytes, since there are many.
type hold struct {
	novel       int64
	incarnation uint32
	slot        state.Slot
	prefilled   bool
}

// load is what the hold adds to its backend.
func (n hold) load() Load {
	if n.prefilled {
		return Load{Active: 1}
	}
	return Load{Novel: n.novel, Active: 1}
}

// newHold is a hold on the backend that is now in slot s.
func (l *Ledger) newHold(s state.Slot, novel int64) hold {
	return hold{novel: min(max(novel, 0), maxNovel), slot: s, incarnation: l.row(s).incarnation}
}

// current is whether the hold's backend is still the one in its slot.
func (l *Ledger) current(n hold) bool { return l.rows[n.slot].incarnation == n.incarnation }

// room is whether a new hold of h may be booked.
func (l *Ledger) room(h Holder, id ID) bool {
	held := l.forPeers
	if h == Self {
		held = len(l.holders[Self].holds)
	}
	switch {
	case l.released.has(id.of(h)):
		l.counters.Late++
		return false
	case held >= MaxHeld:
		l.counters.Full++
		return false
	}
	return true
}

// set books n for h: in place of what it held under the id, or where it held
// nothing, if there is room.
func (l *Ledger) set(h Holder, t *holder, id ID, n, was hold, held bool) bool {
	switch {
	case held:
		l.giveBack(h, t, was)
	case !l.room(h, id):
		return false
	case h != Self:
		l.forPeers++
	}
	t.holds[id] = n
	l.count(h, t, n.slot, n.load())
	return true
}

// remove gives a hold back and forgets it.
func (l *Ledger) remove(h Holder, t *holder, id ID, n hold) {
	l.giveBack(h, t, n)
	delete(t.holds, id)
	if h != Self {
		l.forPeers--
	}
}

// giveBack takes a hold out of the sums, where it still counts.
func (l *Ledger) giveBack(h Holder, t *holder, n hold) {
	if l.current(n) {
		l.count(h, t, n.slot, Load{}.minus(n.load()))
	}
}

// count adds d to all sums that h's holds on slot s, which has a row, are in.
// This node's own are in its view whatever the role.
func (l *Ledger) count(h Holder, t *holder, s state.Slot, d Load) {
	if int(s) >= len(t.booked) {
		t.booked = grown(t.booked, s)
	}
	t.booked[s].add(d)
	if h == Self {
		l.views[s].add(d)
		l.markChanged(s)
		return
	}
	l.rows[s].granted.add(d)
	l.look(s)
}

// Where is the slot that this node's own reservation of that id is booked on;
// false where there is none.
func (l *Ledger) Where(id ID) (state.Slot, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.holders[Self].holds[id]
	return n.slot, ok
}

// Prefilled gives back the novel-block load of one of this node's reservations:
// its backend has begun to respond. It returns false where there was none left to
// give back.
func (l *Ledger) Prefilled(id ID) bool { return l.PrefilledFor(Self, id) }

// PrefilledFor is Prefilled for a reservation of h; others' it does not touch.
func (l *Ledger) PrefilledFor(h Holder, id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.known(h)
	if t == nil {
		return false
	}
	n, ok := t.holds[id]
	if !ok || n.prefilled {
		return false
	}
	if l.current(n) {
		l.count(h, t, n.slot, Load{Novel: -n.novel})
	}
	n.prefilled = true
	t.holds[id] = n
	return true
}

// Release gives back all that one of this node's reservations still holds, and
// remembers the id so that whatever would book it later books nothing. It returns
// false where the id was unknown, which is no error.
func (l *Ledger) Release(id ID) bool { return l.ReleaseFor(Self, id) }

// ReleaseFor is Release for a reservation of h; others' it does not touch.
func (l *Ledger) ReleaseFor(h Holder, id ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released.add(id.of(h))
	t := l.known(h)
	if t == nil {
		return false
	}
	n, ok := t.holds[id]
	if !ok {
		return false
	}
	l.remove(h, t, id, n)
	return true
}
