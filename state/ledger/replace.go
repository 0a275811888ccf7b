package ledger

import (
	"slices"

	"kvca/state"
)

// piece is how many holds are taken over before others get the lock.
const piece = 512

// Held is one live reservation as its holder knows it.
type Held struct {
	ID        ID
	Slot      state.Slot
	Novel     int64 // bytes of CBR
	Prefilled bool
}

// Adopt makes a hold of h what its holder says it is: books it where it was not
// known, moves it where it was elsewhere. A hold that has been prefilled stays so
// while it stays where it is, since what says otherwise is older. Adopt returns
// false where nothing is booked: the id was released before, or there is no room.
func (l *Ledger) Adopt(h Holder, d Held) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.adopt(h, &d)
}

func (l *Ledger) adopt(h Holder, d *Held) bool {
	t := l.enter(h)
	if t == nil {
		return false
	}
	n := l.newHold(d.Slot, d.Novel)
	n.prefilled = d.Prefilled
	was, held := t.holds[d.ID]
	if held && was.slot == n.slot && was.incarnation == n.incarnation {
		n.prefilled = n.prefilled || was.prefilled
		if n == was {
			return true
		}
	}
	ok := l.set(h, t, d.ID, n, was, held)
	if ok && !held {
		l.counters.Adopted++
	}
	return ok
}

// Replace makes the ledger hold for h exactly what h says it holds: a lost
// release, a reservation booked twice and a ledger that started empty all heal by
// it. It replaces, it never adds. Pending are ids whose grant may still be on its
// way to the holder: they stay where they are held and are booked nowhere. An id
// that was released before is not booked again.
//
// What h no longer holds goes in one pass; what it does hold is taken over in
// pieces, between which other calls get their turn.
func (l *Ledger) Replace(h Holder, held []Held, pending []ID) {
	keep := make(map[ID]struct{}, len(held)+len(pending))
	for i := range held {
		keep[held[i].ID] = struct{}{}
	}
	for _, id := range pending {
		keep[id] = struct{}{}
	}
	l.removeOthers(h, keep)
	for some := range slices.Chunk(held, piece) {
		l.adoptAll(h, some)
	}
}

func (l *Ledger) removeOthers(h Holder, keep map[ID]struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.known(h)
	if t == nil {
		return
	}
	for id, n := range t.holds {
		if _, ok := keep[id]; !ok {
			l.remove(h, t, id, n)
		}
	}
}

func (l *Ledger) adoptAll(h Holder, held []Held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range held {
		l.adopt(h, &held[i])
	}
}

// Holds appends to dst what h holds on the slots that keep returns true for, on
// all of them where keep is nil; holds of backends that are gone are left out.
// The lock is held meanwhile: keep must not call the ledger.
func (l *Ledger) Holds(h Holder, dst []Held, keep func(state.Slot) bool) []Held {
	dst = slices.Grow(dst, l.HeldBy(h))
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.known(h)
	if t == nil {
		return dst
	}
	for id, n := range t.holds {
		if l.current(n) && (keep == nil || keep(n.slot)) {
			dst = append(dst, Held{ID: id, Slot: n.slot, Novel: n.novel, Prefilled: n.prefilled})
		}
	}
	return dst
}
