package kvindex

// Store takes blocks that the source holds now.
//
// nil means that all are taken; a store that names no tokens and no size (an
// offloading connector's) adds its tier to the blocks that are known and skips the
// others. See ErrOrphan, ErrSpan, ErrBlockSize and ErrFull for what else it says.
func (s *Source) Store(e *Stored) error {
	s.x.blocks.prepare()
	s.feed.Lock()
	defer s.feed.Unlock()
	s.mu.Lock()
	err := s.store(e)
	s.mu.Unlock()
	s.x.sweep(bite + sweepPerBlock*len(e.Hashes))
	s.tell()
	return err
}

// run is an event as it is taken: what its blocks that are not known yet are.
type run struct {
	*Stored
	tier Tier
	kind runKind
	size int // tokens a block
}

type runKind uint8

const (
	chained  runKind = iota // keys come from tokens
	byName                  // keys come from the engine's hashes
	nameless                // new blocks can't be indexed, but are known
	marking                 // only tiers of known blocks
)

func (s *Source) store(e *Stored) error {
	if s.closed {
		return ErrClosed
	}
	r := run{Stored: e, tier: min(e.Tier, Remote)}
	err := s.plan(&r)
	if err == ErrOrphan {
		s.counts.orphans.Add(uint64(len(e.Hashes)))
		return err
	}
	for i := range e.Hashes {
		if i%batch == 0 {
			s.lookAhead(e.Hashes[i:min(i+batch, len(e.Hashes))], &r, i)
		}
		if !s.take(&r, i) && !s.retry(&r, i) {
			s.counts.dropped.Add(uint64(len(e.Hashes) - i))
			s.counts.partial.Store(true)
			return ErrFull
		}
	}
	return err
}

// retry takes a block after looking for memory that is void.
func (s *Source) retry(r *run, i int) bool {
	if s.x.sweeper.due.Load() == 0 {
		return false
	}
	s.x.sweep(hungry)
	return s.take(r, i)
}

// plan decides what an event's new blocks are, and begins their chain.
func (s *Source) plan(r *run) error {
	n, size := len(r.Hashes), int(s.blockSize.Load())
	named := s.origin.Named != nil
	r.kind = nameless
	switch {
	case len(r.Tokens) == 0 && (named || r.BlockSize == 0):
		if r.kind = marking; named {
			r.kind = byName
		}
		if r.BlockSize != 0 && r.BlockSize != size {
			r.kind = nameless
			return ErrBlockSize
		}
		return nil
	case r.BlockSize < 0 || r.BlockSize > MaxBlockSize:
		return ErrBlockSize
	case len(r.Tokens) != n*r.BlockSize:
		return ErrSpan
	case size != 0 && r.BlockSize != size:
		return ErrBlockSize
	}
	r.size = r.BlockSize
	if named {
		r.kind = byName
		return nil
	}
	if !s.begin(r) {
		return ErrOrphan
	}
	if r.kind = chained; size == 0 && n > 0 {
		s.blockSize.Store(int64(r.BlockSize))
		s.x.publish()
	}
	return nil
}

// begin puts the key before a run's first block into the keyer; false where it is
// not known.
func (s *Source) begin(r *run) bool {
	if !r.HasParent {
		s.keyer.root(r.BlockSize, r.LoRA, r.Salt)
		return true
	}
	place, ok := s.known.find(s.x.mix(r.Parent))
	if !ok {
		return false
	}
	s.keyer.last = s.known.val(place).key()
	return s.keyer.last != 0
}

// take adds one copy of the i-th block; false where there is no memory for it.
func (s *Source) take(r *run, i int) bool {
	hash, room := s.x.mix(r.Hashes[i]), s.known.reserve()
	place, ok := s.known.find(hash)
	if ok {
		return s.again(r, i, s.known.val(place))
	}
	if r.kind == marking {
		s.counts.skipped.Add(1)
		return true
	}
	last := s.keyer.last
	k := known{copies: copies(0).set(r.tier, 1)}
	k.setKey(s.keyOf(r, i))
	if !room || !s.known.insert(place, hash, k) {
		s.keyer.last = last
		return false
	}
	if r.kind == nameless {
		s.counts.skipped.Add(1)
		return true
	}
	before, ok := s.hold(k.key(), 1<<r.tier, r.sample(i))
	if ok && before>>r.tier&1 != 0 {
		ok = s.another(holding{k.key(), r.tier})
	}
	if !ok {
		s.known.remove(place)
		s.keyer.last = last
	}
	return ok
}

// again adds one copy of a block that is known.
func (s *Source) again(r *run, i int, k *known) bool {
	had, bit := k.copies.of(r.tier), uint8(1)<<r.tier
	if k.key() == 0 {
		if r.kind != chained && r.kind != byName {
			k.copies = k.copies.set(r.tier, had+1)
			return true
		}
		return s.identify(r, i, k)
	}
	s.keyer.last = k.key()
	before, ok := s.hold(k.key(), bit, r.sample(i))
	switch {
	case !ok:
		return false
	case before&bit == 0:
		had = 0 // what it had before is forgotten
	case had == 0 && !s.another(holding{k.key(), r.tier}):
		return false
	}
	k.copies = k.copies.set(r.tier, had+1)
	return true
}

// identify indexes a block that was known by name only.
func (s *Source) identify(r *run, i int, k *known) bool {
	last := s.keyer.last
	key, copies := s.keyOf(r, i), k.copies.set(r.tier, k.copies.of(r.tier)+1)
	before, ok := s.hold(key, copies.tiers(), r.sample(i))
	for t := range Tier(Tiers) {
		if ok && before&copies.tiers()>>t&1 != 0 {
			ok = s.another(holding{key, t})
		}
	}
	if !ok {
		s.keyer.last = last
		return false
	}
	k.setKey(key)
	k.copies = copies
	return true
}

// keyOf computes the key of the i-th block; 0 for one that can't be indexed.
func (s *Source) keyOf(r *run, i int) uint64 {
	switch r.kind {
	case byName:
		return named(s.x.key, r.Hashes[i], s.print)
	case chained:
		if next := s.ahead.next[i%batch]; next.key != 0 && next.last == s.keyer.last {
			s.keyer.last = next.key
			return next.key
		}
		extra := uint64(0)
		if i < len(r.Extras) {
			extra = r.Extras[i]
		}
		return s.keyer.next(r.Tokens[i*r.size:(i+1)*r.size], extra)
	}
	return 0
}

// sample is the first two tokens of the i-th block, where it has them.
func (r *run) sample(i int) uint64 {
	var first, second uint32
	if r.size > 0 && r.kind != nameless {
		first = r.Tokens[i*r.size]
		if r.size > 1 {
			second = r.Tokens[i*r.size+1]
		}
	}
	return packSample(first, second)
}

// hold adds tiers in which the source holds a key.
func (s *Source) hold(key uint64, tiers uint8, sample uint64) (before uint8, ok bool) {
	return s.change(key, 0xf, tiers, sample)
}

// change changes the tiers in which the source holds a key to before&keep | add,
// and notes what is to be told. ok is false as holdBy has it.
func (s *Source) change(key uint64, keep, add uint8, sample uint64) (before uint8, ok bool) {
	shard, hash := s.x.shardOf(key)
	shard.mu.Lock()
	before, after, ok := shard.holdBy(hash, s.number, keep, add, sample)
	shard.mu.Unlock()
	if before == after {
		return before, ok
	}
	switch {
	case before == 0:
		s.counts.blocks.Add(1)
	case after == 0:
		s.counts.blocks.Add(-1)
	}
	if s.watch != nil {
		s.changes = append(s.changes, Held{Key: key, Tiers: after, Sample: unpackSample(sample)})
	}
	return before, ok
}

// another counts one name more that stands for a key in a tier.
func (s *Source) another(h holding) bool {
	if s.more[h] == 0 {
		if !s.x.budget.take(holdingBytes) {
			return false
		}
		if s.more == nil {
			s.more = make(map[holding]uint32)
		}
	}
	s.more[h]++
	return true
}

// fewer takes one of those back; false where there is none.
func (s *Source) fewer(h holding) bool {
	switch s.more[h] {
	case 0:
		return false
	case 1:
		s.release(h)
	default:
		s.more[h]--
	}
	return true
}

func (s *Source) release(h holding) {
	if _, ok := s.more[h]; ok {
		delete(s.more, h)
		s.x.budget.give(holdingBytes)
	}
}

func (s *Source) releaseAll(key uint64) {
	for t := range Tier(Tiers) {
		s.release(holding{key, t})
	}
}
