package blockmap

// index finds elements of a pool by hash: buckets of chained elements, one
// bucket for each element the pool has ever handed out (linear hashing). It
// grows by splitting one bucket whenever the pool grows by one, so there is no
// moment at which everything is hashed again, and a removal leaves nothing
// behind. Hashes must be uniform in their low 32 bits: those of blocks are
// SipHash outputs under a secret key.
type index struct {
	heads pool[uint32] // first element of each bucket, 0 for none
	mask  uint32       // heads.used <= mask+1, and > mask>>1
}

func newIndex(limit uint32) index { return index{heads: newPool[uint32](limit)} }

func (x *index) bucket(hash uint32) uint32 {
	b := hash & x.mask
	if b >= x.heads.used {
		b &= x.mask >> 1
	}
	return b
}

func (x *index) head(hash uint32) *uint32 { return x.heads.at(x.bucket(hash)) }

// grow adds a bucket and moves to it what belongs there. links tells an
// element's hash and where its link to the next one of its bucket is.
func (x *index) grow(links func(i uint32) (hash uint32, chain *uint32)) {
	b := x.heads.fresh()
	if b > x.mask {
		x.mask = x.mask<<1 | 1
	}
	from, to := x.heads.at(b&(x.mask>>1)), x.heads.at(b)
	for i := *from; i != 0; {
		hash, chain := links(i)
		next := *chain
		if x.bucket(hash) == b {
			*from, *chain, *to = next, *to, i
		} else {
			from = chain
		}
		i = next
	}
}

// splits returns the bucket that the k-th next grow splits, as a hash that is in
// it.
func (x *index) splits(k uint32) uint32 {
	b := x.heads.used + k
	if b > x.mask {
		return b & x.mask
	}
	return b & (x.mask >> 1)
}
