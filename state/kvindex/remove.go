package kvindex

import "kvca/state/enginehash"

// Remove takes one copy of each block from a tier, and returns how many of them
// the source did not have there. A block is held as long as a copy is left.
func (s *Source) Remove(hashes []uint64, t Tier) (unknown int) {
	s.feed.Lock()
	defer s.feed.Unlock()
	t = min(t, Remote)
	s.mu.Lock()
	for i, hash := range hashes {
		if i%batch == 0 {
			s.lookAhead(hashes[i:min(i+batch, len(hashes))], nil, 0)
		}
		if !s.drop(s.x.mix(hash), t) {
			unknown++
		}
	}
	s.mu.Unlock()
	s.counts.unknown.Add(uint64(unknown))
	s.x.sweep(bite + sweepPerBlock*len(hashes))
	s.tell()
	return unknown
}

func (s *Source) drop(hash uint64, t Tier) bool {
	place, ok := s.known.find(hash)
	if !ok {
		return false
	}
	k := s.known.val(place)
	n, key := k.copies.of(t), k.key()
	if n == 0 {
		return false
	}
	k.copies = k.copies.set(t, n-1)
	if k.copies == 0 {
		s.known.remove(place)
		s.known.settle()
	}
	if n == 1 && key != 0 && !s.fewer(holding{key, t}) {
		if _, ok := s.change(key, ^(uint8(1) << t), 0, 0); !ok {
			s.lose(key)
		}
	}
	return true
}

// lose notes that a key is held no longer for want of memory to note where it still is.
func (s *Source) lose(key uint64) {
	s.releaseAll(key)
	s.counts.dropped.Add(1)
	s.counts.partial.Store(true)
}

// Forget is told that the source has evidently evicted what it was believed to
// hold of a prompt from a token on: that is gone until it is stored anew.
func (s *Source) Forget(p *Prompt, fromTokens int) {
	size := int(s.blockSize.Load())
	if size == 0 {
		return
	}
	from := min(max(fromTokens, 0), len(p.Tokens)) / size
	keys := s.x.keys(p, size, s.origin.Named, s.print)
	s.feed.Lock()
	defer s.feed.Unlock()
	if int(s.blockSize.Load()) != size || from >= len(keys) {
		return
	}
	s.mu.Lock()
	for _, key := range keys[from:] {
		if before, _ := s.change(key, 0, 0, 0); before != 0 {
			s.releaseAll(key)
		}
	}
	s.mu.Unlock()
	s.tell()
}

// keys are those of all full blocks of a prompt.
func (x *Index) keys(p *Prompt, blockSize int, c *enginehash.Chain, print uint64) []uint64 {
	if c != nil {
		hashes := c.Append(nil, enginePrompt(p, nil), blockSize)
		for i, h := range hashes {
			hashes[i] = named(x.key, h, print)
		}
		return hashes
	}
	n := len(p.Tokens) / blockSize
	keys := make([]uint64, n)
	k := keyer{key: x.key}
	k.root(blockSize, p.LoRA, p.Salt)
	e := extras{media: p.Media, blockSize: blockSize}
	for i := range keys {
		keys[i] = k.next(p.Tokens[i*blockSize:(i+1)*blockSize], e.next())
	}
	return keys
}
