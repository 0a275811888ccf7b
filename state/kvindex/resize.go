package kvindex

// reserve makes room for one entry more; false where the table is full. Places
// are others after it.
func (t *table[V]) reserve() bool {
	for range growSteps {
		if (t.n+1)*64 <= t.room*growLoad {
			return true
		}
		if !t.grow() {
			break
		}
	}
	return (t.n+1)*64 <= t.room*fullLoad
}

// settle gives at most so many places back where the table has far too many.
// Places are others after it.
func (t *table[V]) settle(steps int) {
	for range steps {
		if t.room <= minPlaces || t.n*64 >= t.room*shrinkLoad || !t.shrink() {
			return
		}
	}
}

// grow spreads out one place; false where there is no memory for it.
func (t *table[V]) grow() bool {
	if t.f == 0 {
		t.a, t.f = t.b, t.b
	}
	if t.a == t.b {
		t.b += max(t.b/cyclePart, minPlaces/2)
		t.cover(t.b)
	}
	f := t.f - 1
	first, n := t.homed(f, f, f)
	if !t.ownFree(f*t.b/t.a, n) {
		return false
	}
	t.lift(first, f, n)
	t.f = f
	t.drop()
	return true
}

// shrink draws one place together; false where that is not possible now.
func (t *table[V]) shrink() bool {
	if t.f == t.a {
		t.b = t.a
		t.release()
		smaller := max(t.b-t.b/(cyclePart+1), minPlaces)
		if smaller == t.b {
			return false
		}
		t.a, t.f = smaller, 0
	}
	first, n := t.homed(t.f, t.f*t.b/t.a, (t.f+1)*t.b/t.a)
	if !t.ownFree(t.f, n) {
		return false
	}
	t.lift(first, t.f, n)
	t.f++
	t.drop()
	if t.f == t.a {
		t.b = t.a
		t.release()
	}
	return true
}

// homed returns where the entries whose home among a is f begin, and how many
// they are. The home that they have now is between low and high.
func (t *table[V]) homed(f, low, high uint64) (first uint64, n int) {
	for place := low; ; place++ {
		hash := t.hashAt(place)
		if hash == 0 {
			if place >= high {
				return first, n
			}
			continue
		}
		switch home := scale(hash, t.a); {
		case home > f:
			return first, n
		case home == f:
			if n == 0 {
				first = place
			}
			n++
		}
	}
}

// ownFree makes sure that n entries can be put in from place on.
func (t *table[V]) ownFree(place uint64, n int) bool {
	for ; n > 0; place++ {
		if t.hashAt(place) == 0 {
			if !t.own(place) {
				return false
			}
			n--
		}
	}
	return true
}

// lift takes out the n entries from first on whose home among a is f.
func (t *table[V]) lift(first, f uint64, n int) {
	t.moved = t.moved[:0]
	for place := first; n > 0; {
		c, i := t.at(place)
		if hash := c.hash[i]; hash == 0 || scale(hash, t.a) != f {
			place++
			continue
		}
		t.moved = append(t.moved, moved[V]{c.hash[i], c.val[i]})
		t.remove(place)
		n--
	}
}

// drop puts back what lift took out, and updates the room.
func (t *table[V]) drop() {
	for i := range t.moved {
		m := &t.moved[i]
		place, ok := t.find(m.hash)
		for ok && t.hashAt(place) == m.hash {
			place++ // after its equals: their order counts
		}
		t.insert(place, m.hash, m.val)
	}
	if cap(t.moved) > 64 {
		t.moved = nil
	}
	t.room = int(t.f + t.b - t.f*t.b/t.a)
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
		if c := t.chunks[last-1]; c != t.pool.void {
			if c.hash != [chunkLen]uint64{} {
				return
			}
			t.pool.give(c)
			t.owned--
		}
		t.chunks[last] = nil
		t.chunks = t.chunks[:last]
		t.chunks[last-1] = t.pool.void
	}
}

// discard empties the table at once.
func (t *table[V]) discard() {
	t.pool.discard(t.owned)
	*t = newTable(t.pool)
}
