package kvindex

import "math/bits"

// lookupBatch is how many blocks are looked up for each hold of locks: enough to
// wait for the memory of several at a time, and over in a microsecond.
const lookupBatch = 16

// Lookup finds out what each live source holds of a prompt. It may be called by any goroutine.
func (x *Index) Lookup(p *Prompt, r *Result) {
	v := x.view.Load()
	r.begin(v)
	r.work.key = x.key
	for i := range v.families {
		f := &v.families[i]
		// An engine computes the last token anew, and so the block it is in.
		blocks := (len(p.Tokens) - 1) / f.blockSize
		if blocks < 1 {
			continue
		}
		r.size = f.blockSize
		r.walk.begin(f, len(v.seats))
		x.follow(p, r, f, blocks)
		r.walk.end(r)
	}
}

// follow walks along a prompt until nobody holds it.
func (x *Index) follow(p *Prompt, r *Result, f *family, blocks int) {
	if f.named != nil {
		x.followNamed(p, r, f, blocks)
		return
	}
	e := extras{media: p.Media, blockSize: f.blockSize}
	r.work.root(f.blockSize, p.LoRA, p.Salt)
	tokens := p.Tokens
	for blocks > 0 {
		n := min(blocks, lookupBatch)
		blocks -= n
		r.keys = r.keys[:0]
		for range n {
			r.keys = append(r.keys, r.work.next(tokens[:f.blockSize], e.next()))
			tokens = tokens[f.blockSize:]
		}
		if !x.walkBatch(r, r.keys) {
			return
		}
	}
}

func (x *Index) followNamed(p *Prompt, r *Result, f *family, blocks int) {
	r.prompt = *enginePrompt(p, r.prompt.Media[:0])
	r.keys = f.named.Append(r.keys[:0], &r.prompt, f.blockSize)
	r.prompt.Tokens = nil
	keys := r.keys[:min(blocks, len(r.keys))]
	for i, h := range keys {
		keys[i] = named(x.key, h, f.print)
	}
	for len(keys) > 0 {
		n := min(len(keys), lookupBatch)
		if !x.walkBatch(r, keys[:n]) {
			return
		}
		keys = keys[n:]
	}
}

// walkBatch walks along at most lookupBatch blocks; false where nobody holds the
// last. It takes the locks of their shards in order.
func (x *Index) walkBatch(r *Result, keys []uint64) bool {
	var locked [1 << maxShardBits / 64]uint64
	for _, key := range keys {
		s := key >> (64 - x.shardBits)
		locked[s/64] |= 1 << (s % 64)
	}
	x.lock(&locked)
	defer x.unlock(&locked)
	var places [lookupBatch]uint64
	found := x.locate(keys, &places, &r.walk)
	for i, key := range keys[:found] {
		t, hash := &x.shards[key>>(64-x.shardBits)].table, x.turn(key)
		if r.walk.again(t, places[i], hash) {
			continue
		}
		r.walk.gather(t, places[i], hash)
		if !r.walk.step(r) {
			return false
		}
	}
	return found == len(keys)
}

// locate finds the heads of blocks, as far as there is one for each. Most of the
// time it waits for memory. A processor waits for many places at a time, if to ask for
// them takes few instructions and no guesses. So first comes where to look, then all is
// touched, and then read: a block's entries are mostly within 8 places from its home.
func (x *Index) locate(keys []uint64, places *[lookupBatch]uint64, w *walk) (found int) {
	var chunks [lookupBatch]*chunk[uint64]
	for i, key := range keys {
		t := &x.shards[key>>(64-x.shardBits)].table
		places[i] = t.home(x.turn(key))
		chunks[i] = t.chunks[places[i]>>chunkBits]
	}
	sum := w.touched
	for i, c := range chunks[:len(keys)] {
		first := places[i] & chunkMask
		last := min(first+near-1, chunkMask)
		sum += *c.hashAt(first) + *c.hashAt(last) + *c.valAt(first) + *c.valAt(last)
	}
	w.touched = sum
	for i, key := range keys {
		t, ok := &x.shards[key>>(64-x.shardBits)].table, false
		if places[i], ok = t.findNear(places[i], x.turn(key)); !ok {
			return i
		}
	}
	return len(keys)
}

func (x *Index) lock(shards *[1 << maxShardBits / 64]uint64) {
	for i, word := range shards {
		for ; word != 0; word &= word - 1 {
			x.shards[i*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (x *Index) unlock(shards *[1 << maxShardBits / 64]uint64) {
	for i, word := range shards {
		for ; word != 0; word &= word - 1 {
			x.shards[i*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}
