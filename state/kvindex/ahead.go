package kvindex

// spot is where in a table the search for a hash begins.
type spot[V any] struct {
	chunk *chunk[V]
	place uint64
}

func (t *table[V]) spot(hash uint64) spot[V] {
	home := t.home(hash)
	return spot[V]{t.chunks[home>>chunkBits], home}
}

// touch has the processor read all that the searches from some spots most likely need. It
// waits for many places at a time, if to ask for them takes few instructions and no
// guesses: so the spots come first, then this, and then the searches. What it returns
// means nothing, and is to be kept somewhere, so that the compiler leaves it alone.
func touch[V any](spots []spot[V]) (sum uint64) {
	for i := range spots {
		c, first := spots[i].chunk, spots[i].place&chunkMask
		last := min(first+near-1, chunkMask)
		sum += c.at(first).hash() + c.at((first+last)/2).hash() + c.at(last).hash()
	}
	return sum
}

// ahead is what is done for a few blocks of an event before they are taken one by one.
// It belongs to whoever holds Source.feed.
type ahead struct {
	known   [batch]spot[known]
	keys    [batch]uint64 // of those blocks that have one, in order
	next    [batch]step
	touched uint64
}

// step is the key of the block after another, computed ahead; 0: it is not.
type step struct{ last, key uint64 }

// lookAhead gets ready for the next blocks of an event, at most a batch: one by one they
// would wait for memory five times each. A run's keys are computed on the way.
func (s *Source) lookAhead(hashes []uint64, r *run, from int) {
	a := &s.ahead
	if a.next[0] = (step{}); len(hashes) == 1 {
		return // nothing to wait for together
	}
	for i, hash := range hashes {
		a.known[i] = s.known.spot(s.x.mix(hash))
	}
	a.touched += touch(a.known[:len(hashes)])
	keys, chain := a.keys[:0], s.keyer.last
	for i, hash := range hashes {
		a.next[i] = step{}
		place, ok := s.known.findFrom(a.known[i].place, s.x.mix(hash))
		switch {
		case ok:
			s.keyer.last = s.known.val(place).key()
		case r == nil || r.kind != chained && r.kind != byName:
			continue
		default:
			last := s.keyer.last
			a.next[i] = step{last, s.keyOf(r, from+i)}
			s.keyer.last = a.next[i].key
		}
		if s.keyer.last != 0 {
			keys = append(keys, s.keyer.last)
		}
	}
	s.keyer.last = chain
	a.touched += s.x.touch(keys)
}

// lookAtKeys is lookAhead for what another node tells.
func (s *Source) lookAtKeys(h []Held) {
	a := &s.ahead
	for i := range h {
		a.keys[i] = never0(h[i].Key)
	}
	a.touched += s.x.touch(a.keys[:len(h)])
}

// touch has the processor read where the blocks of at most a batch of keys are.
func (x *Index) touch(keys []uint64) uint64 {
	var spots [batch]spot[uint64]
	locked := x.shardsOf(keys)
	x.lock(&locked)
	defer x.unlock(&locked)
	return touch(x.spots(keys, &spots))
}

// spots is where the searches for some keys begin. The locks of their shards are held.
func (x *Index) spots(keys []uint64, spots *[batch]spot[uint64]) []spot[uint64] {
	for i, key := range keys {
		spots[i] = x.shards[key>>(64-x.shardBits)].table.spot(x.turn(key))
	}
	return spots[:len(keys)]
}
