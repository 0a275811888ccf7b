package kvindex

// Put sets the tiers in which the source holds some keys, 0 for none: what another
// node knows. A source is fed by Put or by Store and Remove, not by both. Blocks of
// another size than the source's are skipped; Reset makes it learn a new one.
func (s *Source) Put(h []Held, blockSize int) {
	s.x.blocks.prepare()
	s.feed.Lock()
	defer s.feed.Unlock()
	s.mu.Lock()
	s.put(h, blockSize)
	s.mu.Unlock()
	s.x.sweep(bite + sweepPerBlock*len(h))
	s.tell()
}

func (s *Source) put(h []Held, blockSize int) {
	if s.closed || len(h) == 0 {
		return
	}
	size := int(s.blockSize.Load())
	if blockSize < 1 || blockSize > MaxBlockSize || size != 0 && size != blockSize || s.known.n > 0 {
		s.counts.skipped.Add(uint64(len(h)))
		return
	}
	if s.keyed = true; size == 0 {
		s.blockSize.Store(int64(blockSize))
		s.x.publish()
	}
	for i := range h {
		if i%batch == 0 {
			s.lookAtKeys(h[i:min(i+batch, len(h))])
		}
		if !s.putOne(&h[i]) {
			s.counts.dropped.Add(1)
			s.counts.partial.Store(true)
		}
	}
}

func (s *Source) putOne(h *Held) bool {
	tiers, sample := h.Tiers&(1<<Tiers-1), packSample(h.Sample[0], h.Sample[1])
	key := never0(h.Key)
	_, ok := s.change(key, 0, tiers, sample)
	if !ok && s.x.sweeper.due.Load() > 0 {
		s.x.sweep(hungry)
		_, ok = s.change(key, 0, tiers, sample)
	}
	return ok
}
