package kvindex

// pagePiece is how many entries are looked at for each hold of a lock.
const pagePiece = 256

// Page appends what the source holds to dst, at most limit keys from a cursor on:
// 0 begins, and 0 comes back at the end. What changes meanwhile may be missed or
// told as it was; the watcher tells of it. Who holds one lock of his own around
// Page and the sending of what it returned, and in the watcher around the sending
// of the changes, sends them in the order in which they are true. A key may be told twice.
func (s *Source) Page(cursor uint64, limit int, dst []Held) ([]Held, uint64) {
	for limit > 0 {
		before := len(dst)
		dst, cursor = s.pagePiece(cursor, min(limit, pagePiece), dst)
		if cursor == 0 {
			return dst, 0
		}
		limit -= len(dst) - before
	}
	return dst, cursor
}

func (s *Source) pagePiece(cursor uint64, limit int, dst []Held) ([]Held, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return dst, 0
	}
	if s.keyed {
		return s.x.pageKeyed(s.number, cursor, limit, dst)
	}
	place, ok := s.known.seek(cursor)
	for range limit {
		if ok && s.known.hashAt(place) == 0 {
			place, ok = s.known.seek(cursor)
		}
		if !ok {
			return dst, 0
		}
		dst = s.pageOne(s.known.val(place).key(), dst)
		if cursor = s.known.hashAt(place) + 1; cursor == 0 {
			return dst, 0
		}
		place++
	}
	return dst, cursor
}

func (s *Source) pageOne(key uint64, dst []Held) []Held {
	if key == 0 {
		return dst
	}
	shard, hash := s.x.shardOf(key)
	shard.mu.Lock()
	tiers, sample := shard.tiers(hash, s.number)
	shard.mu.Unlock()
	if tiers == 0 {
		return dst
	}
	return append(dst, Held{Key: key, Tiers: tiers, Sample: unpackSample(sample)})
}

// pageKeyed finds what a source holds among all blocks: one that is fed in keys has
// no list of its own.
func (x *Index) pageKeyed(n number, cursor uint64, limit int, dst []Held) ([]Held, uint64) {
	return dst, x.scan(cursor, pagePiece, bite, func(s *shard, hash uint64) bool {
		if tiers, sample := s.tiers(hash, n); tiers != 0 {
			dst = append(dst, Held{Key: x.keyOf(hash), Tiers: tiers, Sample: unpackSample(sample)})
			limit--
		}
		return limit > 0
	})
}

// scan goes through at most a number of blocks in the order of keys, from a cursor
// on, until f, which is called under the shard's lock, has enough. It returns where to
// go on, 0 at the end. Each hold of a lock is for a number of blocks.
func (x *Index) scan(cursor uint64, blocks, hold int, f func(s *shard, hash uint64) bool) (next uint64) {
	shift := 64 - x.shardBits
	for at := cursor >> shift; at < uint64(len(x.shards)); at++ {
		for cursor>>shift == at {
			last, seen, more := x.shards[at].scan(x.turn(cursor), min(blocks, hold), f)
			if seen == 0 {
				break
			}
			if cursor = x.keyOf(last) + 1; cursor == 0 {
				return 0
			}
			if blocks -= seen; blocks <= 0 || !more {
				return cursor
			}
		}
		cursor = (at + 1) << shift
	}
	return 0
}

// scan calls f for at most a number of blocks from a hash on, until f has enough
// (more is false then), and returns the last.
func (s *shard) scan(from uint64, blocks int, f func(s *shard, hash uint64) bool) (last uint64, seen int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place, ok := s.table.seek(from)
	for ok && seen < blocks {
		last = s.table.hashAt(place)
		seen++
		if !f(s, last) {
			return last, seen, false
		}
		for place++; s.table.hashAt(place) == last; place++ {
		}
		if s.table.hashAt(place) == 0 {
			place, ok = s.table.seek(last + 1)
		}
		if last == 1<<64-1 {
			break
		}
	}
	return last, seen, true
}
