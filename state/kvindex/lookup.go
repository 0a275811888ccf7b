package kvindex

import "math/bits"

// batch is how many blocks are looked up, or got ready for, at a time: enough to wait for
// the memory of several together, and over in a microsecond.
const batch = 16

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
		n := min(blocks, batch)
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
		n := min(len(keys), batch)
		if !x.walkBatch(r, keys[:n]) {
			return
		}
		keys = keys[n:]
	}
}

// walkBatch walks along at most batch blocks; false where nobody holds the
// last. It takes the locks of their shards in order.
func (x *Index) walkBatch(r *Result, keys []uint64) bool {
	locked := x.shardsOf(keys)
	x.lock(&locked)
	defer x.unlock(&locked)
	var spots [batch]spot[uint64]
	r.walk.touched += touch(x.spots(keys, &spots))
	found := x.findAll(keys, &spots)
	for i, key := range keys[:found] {
		t, hash := &x.shards[key>>(64-x.shardBits)].table, x.turn(key)
		if r.walk.again(t, spots[i].place, hash) {
			continue
		}
		r.walk.gather(t, spots[i].place, hash)
		if !r.walk.step(r) {
			return false
		}
	}
	return found == len(keys)
}

// findAll finds the heads of blocks from their spots on, as far as there is one for each.
func (x *Index) findAll(keys []uint64, spots *[batch]spot[uint64]) (found int) {
	for i, key := range keys {
		s, hash := x.shardOf(key)
		place, ok := s.table.findNear(spots[i].place, hash)
		if !ok {
			return i
		}
		spots[i].place = place
	}
	return len(keys)
}

// shardSet is a bit for each shard.
type shardSet [1 << maxShardBits / 64]uint64

func (x *Index) shardsOf(keys []uint64) (set shardSet) {
	for _, key := range keys {
		s := key >> (64 - x.shardBits)
		set[s/64] |= 1 << (s % 64)
	}
	return set
}

func (x *Index) lock(shards *shardSet) {
	for i, word := range shards {
		for ; word != 0; word &= word - 1 {
			x.shards[i*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (x *Index) unlock(shards *shardSet) {
	for i, word := range shards {
		for ; word != 0; word &= word - 1 {
			x.shards[i*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}
