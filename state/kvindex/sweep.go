package kvindex

import (
	"sync"
	"sync/atomic"
)

const (
	// bite is how many places a shard's lock is held for at most.
	bite = 64
	// Whoever writes sweeps so many places for each block, and a bite for each
	// event.
	sweepPerBlock = 8
	// maxSettle is how often a shard is made smaller after each bite: enough that
	// it is as small as its entries allow when the sweep leaves it.
	maxSettle = 16
	// hungry is how many places a writer that finds no memory sweeps.
	hungry = 1 << 14
)

// sweeper takes dead sources out of the entries, shard by shard in the order of
// hashes. A number that was dead when a pass began is in no entry after it: nobody
// writes a dead number, and entries that move keep their order.
type sweeper struct {
	due atomic.Int32 // dead numbers

	mu    sync.Mutex // guards what follows; taken before a shard's
	dying []number   // what this pass takes out
	mask  []uint64   // by group: the dying
	shard int
	hash  uint64 // where it goes on in the shard
}

// sweep goes over about so many places if there is anything to sweep for, and
// nobody else does so now.
func (x *Index) sweep(places int) {
	if x.sweeper.due.Load() == 0 || !x.sweeper.mu.TryLock() {
		return
	}
	defer x.sweeper.mu.Unlock()
	for places > 0 && x.sweepBite() {
		places -= bite
	}
}

// sweepAll goes on until nothing that is dead now is left.
func (x *Index) sweepAll() {
	x.sweeper.mu.Lock()
	defer x.sweeper.mu.Unlock()
	for passes := 0; passes < 2; {
		if !x.sweepBite() {
			return
		}
		if len(x.sweeper.dying) == 0 {
			passes++
		}
	}
}

// sweepBite sweeps one bite; false where nothing is dead.
func (x *Index) sweepBite() bool {
	w := &x.sweeper
	if len(w.dying) == 0 && !x.beginPass() {
		return false
	}
	s := &x.shards[w.shard]
	next, more := s.sweep(w.hash, w.mask)
	for range maxSettle {
		if !s.settle() {
			break
		}
	}
	if w.hash = next; more {
		return true
	}
	w.hash = 0
	if w.shard++; w.shard == len(x.shards) {
		x.endPass()
	}
	return true
}

func (x *Index) beginPass() bool {
	w := &x.sweeper
	x.mu.Lock()
	w.dying, x.numbers.dead = x.numbers.dead, nil
	x.mu.Unlock()
	if len(w.dying) == 0 {
		return false
	}
	w.shard, w.hash = 0, 0
	w.mask = w.mask[:0]
	for _, n := range w.dying {
		w.mask = maskIn(w.mask, n)
	}
	return true
}

func maskIn(mask []uint64, n number) []uint64 {
	for uint64(len(mask)) <= n.group() {
		mask = append(mask, 0)
	}
	mask[n.group()] |= n.bit()
	return mask
}

// purge takes a number out of the entries, now.
func (x *Index) purge(n number) {
	mask := maskIn(nil, n)
	for i := range x.shards {
		for hash, more := uint64(0), true; more; {
			hash, more = x.shards[i].sweep(hash, mask)
		}
	}
}

func (x *Index) endPass() {
	w := &x.sweeper
	x.mu.Lock()
	x.numbers.free(w.dying)
	w.due.Add(-int32(len(w.dying)))
	x.mu.Unlock()
	w.dying = nil
}

func (s *shard) settle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.settle()
}

// sweep takes the sources of the mask out of a bite of entries from a hash on, and returns
// where to go on.
func (s *shard) sweep(from uint64, mask []uint64) (next uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	place, ok := s.table.seek(from)
	for seen := 0; ok; {
		hash := s.table.hashAt(place)
		if hash == 0 {
			place, ok = s.table.seek(from)
			continue
		}
		if seen >= bite {
			return hash, true
		}
		seen += s.clean(place, hash, mask)
		if s.table.hashAt(place) == hash {
			for place++; s.table.hashAt(place) == hash; place++ {
				seen++
			}
		}
		if from = hash + 1; from == 0 {
			break
		}
	}
	return 0, false
}

// clean takes the sources of the mask out of the block whose head is at place, and
// returns how many entries it looked at.
func (s *shard) clean(place, hash uint64, mask []uint64) (seen int) {
	for p := place + 1; s.table.hashAt(p) == hash; seen++ {
		v := s.table.val(p)
		if g := groupOf(*v); g < uint64(len(mask)) {
			if *v &^= mask[g]; *v&groupSources == 0 {
				s.table.remove(p)
				continue
			}
		}
		p++
	}
	n := headSource(*s.table.val(place))
	if g := n.group(); g < uint64(len(mask)) && mask[g]&n.bit() != 0 {
		s.behead(place, hash)
	}
	return seen + 1
}
