package blockmap

import (
	"time"

	"kvca/state"
)

// walkPiece is how many blocks a walk looks up for each hold of the read lock.
const walkPiece = 1024

// Walk is what the map knows of one chain, and the scratch memory to find it
// out: it belongs to one goroutine, is used again and again, and its slices are
// valid until the next use. The zero Walk is ready.
type Walk struct {
	// Divergence is the index of the first block of the chain that has no
	// unexpired location; the chain's length if all have.
	Divergence int
	// Replicas are the unexpired locations of the block before the divergence
	// point, in no order.
	Replicas []state.Slot
	// Fan[i] is the largest fan-out at or after block i among the known blocks
	// of the chain, at least 1. Requests under way that part from the chain
	// behind a block count as continuations of it too.
	Fan []uint32

	holders []state.Slot
	slots   []depth
	epoch   uint32 // a depth of another epoch is of another walk
	path    []step
	touched uint32 // see warm.go
}

// depth is how many leading blocks one slot holds.
type depth struct {
	epoch, matched, expected uint32
}

// step is a known block of the chain.
type step struct {
	entry  uint32
	count  uint32
	fan    uint16
	ragged bool
	// requests are those under way with the block, on the way through the
	// tentative locations.
	requests uint32
}

// Matched is how many leading blocks of the chain s holds.
func (w *Walk) Matched(s state.Slot) int {
	if int(s) < len(w.slots) && w.slots[s].epoch == w.epoch {
		return int(w.slots[s].matched)
	}
	return 0
}

// Expected is how many leading blocks of the chain s holds or will hold when
// it has answered what is on its way to it.
func (w *Walk) Expected(s state.Slot) int {
	if int(s) < len(w.slots) && w.slots[s].epoch == w.epoch {
		return int(w.slots[s].expected)
	}
	return 0
}

// Holders are the slots with Expected above 0, each once, in no order.
func (w *Walk) Holders() []state.Slot { return w.holders }

func (w *Walk) begin() {
	w.Divergence = 0
	w.Replicas, w.holders, w.path = w.Replicas[:0], w.holders[:0], w.path[:0]
	w.epoch++
	if w.epoch == 0 {
		clear(w.slots)
		w.epoch = 1
	}
}

// fit makes room for every slot there is.
func (w *Walk) fit(top uint32) {
	if n := int(top) - len(w.slots); n > 0 {
		w.slots = append(w.slots, make([]depth, n)...)
	}
}

// learned notes that s holds the first n blocks; the deepest is noted first.
func (w *Walk) learned(s state.Slot, n int) {
	if d := &w.slots[s]; d.epoch != w.epoch {
		*d = depth{epoch: w.epoch, matched: uint32(n), expected: uint32(n)}
		w.holders = append(w.holders, s)
	}
}

// awaited notes that s is going to hold the first n blocks.
func (w *Walk) awaited(s state.Slot, n int) {
	d := &w.slots[s]
	if d.epoch != w.epoch {
		*d = depth{epoch: w.epoch}
		w.holders = append(w.holders, s)
	}
	d.expected = max(d.expected, uint32(n))
}

// fanOut fills Fan for a chain of n blocks.
func (w *Walk) fanOut(n int) {
	if cap(w.Fan) < n {
		w.Fan = make([]uint32, n+n/4)
	}
	w.Fan = w.Fan[:n]
	largest := uint32(1)
	for i := n - 1; i >= 0; i-- {
		if i < w.Divergence {
			largest = max(largest, uint32(w.path[i].fan))
		}
		w.Fan[i] = largest
	}
}

// partings raises Fan by what is under way: as many requests as leave this chain
// behind a block, or end there, have followed it with something else. In a burst
// that is known long before the first answer teaches it.
func (w *Walk) partings() {
	largest, deeper := uint32(1), uint32(0)
	for i := len(w.path) - 1; i >= 0; i-- {
		requests := w.path[i].requests
		if requests > deeper {
			largest = max(largest, requests-deeper)
		}
		w.Fan[i] = max(w.Fan[i], largest)
		deeper = requests
	}
}

// Walk finds out what is known of chain at time now. It takes read locks only.
func (m *Map) Walk(chain []uint64, now time.Duration, w *Walk) {
	t := uint32(ticks(now))
	w.begin()
	m.mu.RLock()
	for rest := chain; len(rest) > 0; {
		n := min(len(rest), walkPiece)
		if !m.descend(rest[:n], t, w) {
			break
		}
		if rest = rest[n:]; len(rest) > 0 {
			m.mu.RUnlock()
			m.mu.RLock()
		}
	}
	w.fit(m.slots.top.Load()) // in the last hold of the lock: there may be new ones
	m.ascend(chain, t, w)
	m.mu.RUnlock()
	w.fanOut(len(chain))
	m.tentative.walk(chain, w, &m.slots)
}

// descend looks blocks up until one is unknown, which it tells.
func (m *Map) descend(chain []uint64, now uint32, w *Walk) bool {
	last, warmed := uint32(0), 1
	for i, hash := range chain {
		b := m.follow(last, hash)
		if b == 0 {
			return false
		}
		if b != last+1 && i >= warmed {
			w.touched += m.warm(chain[i+1:])
			warmed = i + warmGroup
		}
		last = b
		e := m.entries.at(b)
		if !m.believed(e, now) {
			return false
		}
		if last := len(w.path) - 1; last >= 0 && m.parent(e) != w.path[last].entry {
			// It outlived its parent, which then came back without it.
			w.path[last].ragged = true
		}
		w.path = append(w.path, step{entry: b, count: uint32(e.count), fan: e.fan, ragged: e.version&ragged != 0})
	}
	return true
}

// believed tells whether block e has a location that is neither void nor
// expired; nearly always the first one is.
func (m *Map) believed(e *entry, now uint32) bool {
	for {
		if !expired(e.deadline, now) && !m.incs.at(uint32(e.inc)).dead {
			return true
		}
		if e.more == 0 {
			return false
		}
		e = m.entries.at(e.more)
	}
}

// ascend finds the holders, from the deepest known block to the root. What a
// backend holds is closed under prefixes, so a block's holders are among those
// of the block before, and where both have the same number they are the same
// backends: the block before need not be visited. It has to be where an expired
// location has been seen, since the one before may have been refreshed later,
// and where Forget has left a gap.
func (m *Map) ascend(chain []uint64, now uint32, w *Walk) {
	w.Divergence = len(w.path)
	again := true
	for i := len(w.path) - 1; i >= 0; i-- {
		if at := &w.path[i]; !again && !at.ragged && at.count == w.path[i+1].count {
			continue
		}
		again = m.visit(chain[i], i, now, w)
		switch {
		case len(w.holders) == 0:
			// It went while the lock was not held, between two pieces.
			w.Divergence, again = i, true
		case len(w.Replicas) == 0:
			w.Replicas = append(w.Replicas, w.holders...)
		}
	}
}

// visit notes the holders of block i and tells whether one of them has expired.
func (m *Map) visit(hash uint64, i int, now uint32, w *Walk) (again bool) {
	e := m.entries.at(w.path[i].entry)
	if e.hash != hash || e.count == 0 {
		return true
	}
	for {
		in := m.incs.at(uint32(e.inc))
		switch {
		case in.dead:
		case expired(e.deadline, now):
			again = true
		default:
			w.learned(in.slot, i+1)
		}
		if e.more == 0 {
			return again
		}
		e = m.entries.at(e.more)
	}
}
