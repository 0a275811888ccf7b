package kvindex

// resizeBatch is how many places are spread out or drawn together at a time: enough
// that the memory is read in a row, and over in a microsecond.
const resizeBatch = 64

// reserve makes room for one entry more; false where the table is full. Places
// are others after it.
func (t *table[V]) reserve() bool {
	limit := growLoad
	if t.loose {
		limit = looseGrowLoad
	}
	if (t.n+1)*64 <= t.dense()*limit || t.grow() {
		return true
	}
	return (t.n+1)*64 <= min(t.room*fullLoad, t.dense()*denseLoad)
}

// dense is how many places the whole table would have if all of it were as little
// spread out as the least is.
func (t *table[V]) dense() int {
	if t.f == 0 {
		return int(t.b)
	}
	return int(t.a)
}

// settle gives some places back where the table has far too many, and tells whether
// there are more. Places are others after it.
func (t *table[V]) settle() bool {
	limit := shrinkLoad
	if t.loose {
		limit = looseShrinkLoad
	}
	return t.room > minPlaces && t.n*64 < t.room*limit && t.shrink()
}

// grow spreads out a batch of places; false where there is no memory for it.
func (t *table[V]) grow() bool {
	if t.f == 0 {
		t.a, t.f = t.b, t.b
	}
	if t.a == t.b {
		t.b += max(t.b/cyclePart, minPlaces/2)
		t.cover(t.b)
	}
	low := t.f - min(t.f, resizeBatch)
	if !t.rehome(low, t.f, low, t.f, low) {
		return false
	}
	// What is left of low is kept at a, the rest has gone to b: in between there are
	// chunks that nobody needs for a while.
	if low&chunkMask/resizeBatch == chunkLen/resizeBatch/2 {
		t.disown(low>>chunkBits + 1)
	}
	return true
}

// shrink draws a batch of places together; false where that is not possible.
func (t *table[V]) shrink() bool {
	if t.f == t.a {
		t.b = t.a
		smaller := max(t.b-t.b/(cyclePart+1), minPlaces)
		if smaller == t.b {
			return false
		}
		t.a, t.f = smaller, 0
	}
	high := min(t.a, t.f+resizeBatch)
	if !t.rehome(t.f, high, t.f*t.b/t.a, high*t.b/t.a, high) {
		return false
	}
	if t.f == t.a {
		t.b = t.a
		t.release()
	}
	return true
}

// rehome makes f what is given, for which the entries whose home among a is from low
// to below high have to move. They have their homes between the places from and to
// now. false: there is no memory for it, and nothing is changed.
func (t *table[V]) rehome(low, high, from, to, f uint64) bool {
	first, end := t.collect(low, high, from, to)
	places := t.b
	if f == high {
		places = t.a
	}
	if !t.makeRoom(places, high*t.b/t.a) {
		return false
	}
	if len(t.moved) > 0 {
		t.vacate(first, end)
	}
	t.f = f
	t.room = int(f + t.b - f*t.b/t.a)
	for i := range t.moved {
		m := &t.moved[i]
		if e := t.at(m.place); e.hash() == 0 {
			e.set(m.hash, m.val)
			t.n++
		} else {
			t.insert(m.place, m.hash, m.val)
		}
	}
	if cap(t.moved) > 16*resizeBatch {
		t.moved = nil
	}
	return true
}

// collect copies the entries that rehome moves, and returns where the first of them
// is and the place after the last.
func (t *table[V]) collect(low, high, from, to uint64) (first, end uint64) {
	t.moved = t.moved[:0]
	for place := from; ; place++ {
		e := t.at(place)
		hash := e.hash()
		if hash == 0 {
			if place >= to {
				return first, end
			}
			continue
		}
		home := scale(hash, t.a)
		if home >= high {
			return first, end
		}
		if home < low {
			continue
		}
		if len(t.moved) == 0 {
			first = place
		}
		end = place + 1
		t.moved = append(t.moved, moved[V]{hash: hash, val: e.val})
	}
}

// makeRoom finds the places of what was collected, by homes among so many, and makes
// sure that they can be written to, and the empty ones that will be filled where they
// push on what is there from the place others on.
func (t *table[V]) makeRoom(places, others uint64) bool {
	if len(t.moved) == 0 {
		return true
	}
	next := scale(t.moved[0].hash, places)
	for hash := t.hashAt(next); hash != 0 && hash < t.moved[0].hash; hash = t.hashAt(next) {
		next++
	}
	for i := range t.moved {
		m := &t.moved[i]
		m.place = max(next, scale(m.hash, places))
		if !t.own(m.place) {
			return false
		}
		next = m.place + 1
	}
	for more := int64(next - others); more > 0; more-- {
		if others = t.free(others); !t.own(others) {
			return false
		}
		others++
	}
	return true
}

// vacate empties the places of what was collected, and moves what comes after back.
func (t *table[V]) vacate(first, end uint64) {
	t.n -= len(t.moved)
	for place := first; place < end; place++ {
		*t.at(place) = entry[V]{}
	}
	for next := first; ; end++ {
		e := t.at(end)
		hash := e.hash()
		if hash == 0 {
			return
		}
		to := max(next, t.home(hash))
		if to == end {
			return
		}
		*t.at(to), *e = *e, entry[V]{}
		next = to + 1
	}
}

// cover makes the list of chunks long enough for some places and one void.
func (t *table[V]) cover(places uint64) {
	for uint64(len(t.chunks)) < places>>chunkBits+2 {
		t.chunks = append(t.chunks, t.pool.void)
	}
}

// release gives back the chunks beyond the last place that have become empty.
func (t *table[V]) release() {
	for last := len(t.chunks) - 1; last > 1 && uint64(last-1)<<chunkBits >= t.b; last-- {
		if !t.disown(uint64(last - 1)) {
			return
		}
		t.chunks[last] = nil
		t.chunks = t.chunks[:last]
	}
}

// disown gives a chunk back if it is empty.
func (t *table[V]) disown(i uint64) bool {
	c := t.chunks[i]
	if c == t.pool.void {
		return true
	}
	for i := range c {
		if c[i].hash() != 0 {
			return false
		}
	}
	t.pool.give(c)
	t.chunks[i] = t.pool.void
	t.owned--
	return true
}

// discard empties the table at once.
func (t *table[V]) discard() {
	t.pool.discard(t.owned)
	*t = newTable(t.pool)
}
