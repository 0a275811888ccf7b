package ledger

import "kvca/state"

// Tell records what peer h says it holds itself on slot s, in place of what it
// said before.
func (l *Ledger) Tell(h Holder, s state.Slot, sub Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h == Self || h >= MaxHolders {
		return
	}
	t, r := l.enter(h), l.row(s)
	sub = sub.within(maxTold)
	t.told = grown(t.told, s)
	r.told = r.told.minus(t.told[s]).plus(sub)
	t.told[s] = sub
	l.look(s)
}

// Note records what the owner of the backend in slot s said of others' load on
// it, beyond what this node holds. It is valid until the second NextEpoch.
func (l *Ledger) Note(s state.Slot, others Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.row(s)
	r.note, r.noteLeft = others.within(maxNote), noteEpochs
	if !r.noted {
		r.noted = true
		l.noted = append(l.noted, s)
	}
	l.look(s)
}

// NextEpoch lets notes age: call it as often as peers tell their subtotals.
func (l *Ledger) NextEpoch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := l.noted[:0]
	for _, s := range l.noted {
		r := &l.rows[s]
		r.noteLeft -= min(r.noteLeft, 1)
		if r.noted = r.noteLeft > 0; r.noted {
			live = append(live, s)
		}
		l.look(s)
	}
	l.noted = live
}

// Others is the load of slot s as seen here, less what h itself holds or told:
// what an owner answers to h, which knows its own best.
func (l *Ledger) Others(h Holder, s state.Slot) Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	if int(s) >= len(l.rows) {
		return Load{}
	}
	r := l.rows[s]
	if h == Self {
		return r.others()
	}
	if t := l.known(h); t != nil {
		told := at(t.told, s)
		r.granted = r.granted.minus(at(t.booked, s))
		r.told = r.told.minus(told)
		r.note = r.note.minus(told).within(maxNote)
	}
	return at(l.holders[Self].booked, s).plus(r.others())
}
