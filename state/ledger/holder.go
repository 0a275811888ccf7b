package ledger

import "kvca/state"

// MaxHolders bounds the holders of one ledger: this node and its peers.
const MaxHolders = 64

// Holder numbers who holds reservations: this node or a peer. The caller gives
// the numbers out and gives one to another peer only after Drop.
type Holder uint8

// Self is this node.
const Self Holder = 0

// holder is what one node holds here, and for a peer what it told of itself. The
// tables are by slot and as long as the highest one seen.
type holder struct {
	holds  map[ID]hold
	booked []Load // what the holds add up to, earlier incarnations' left out
	told   []Load
}

func newHolder() *holder { return &holder{holds: make(map[ID]hold)} }

// forget clears what is known of slot s.
func (t *holder) forget(s state.Slot) {
	for _, table := range [...][]Load{t.booked, t.told} {
		if int(s) < len(table) {
			table[s] = Load{}
		}
	}
}

// known is h's holder, nil where nothing was ever booked or told for it.
func (l *Ledger) known(h Holder) *holder {
	if h >= MaxHolders {
		return nil
	}
	return l.holders[h]
}

// enter is h's holder, made at first use; nil where there can be no such holder.
func (l *Ledger) enter(h Holder) *holder {
	t := l.known(h)
	if t == nil && h < MaxHolders {
		t = newHolder()
		l.holders[h] = t
	}
	return t
}

// Drop forgets all that was granted to h and told by it: its lease
// is over. This node's own cannot be dropped.
func (l *Ledger) Drop(h Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.known(h)
	if t == nil || h == Self {
		return
	}
	l.holders[h] = nil
	l.forPeers -= len(t.holds)
	for s := range max(len(t.booked), len(t.told)) {
		slot := state.Slot(s)
		r := l.row(slot)
		r.granted = r.granted.minus(at(t.booked, slot))
		r.told = r.told.minus(at(t.told, slot))
		l.look(slot)
	}
}
