package blockmap

// Looking a hash up is a chain of cache misses: bucket, entry, perhaps the next
// entry of the bucket. The lookups of several hashes do not depend on each other,
// though, so a processor that is given the loads in a row has them all under
// way at once. The functions here do those loads ahead of the work, a group at
// a time. Their results mean nothing; they are returned so that the loads stay.

const warmGroup = 16

// warm touches what lookups of the first hashes of chain will touch, and what the
// index moves while it grows by as many.
func (m *Map) warm(chain []uint64) (touched uint32) {
	var keys [warmGroup]uint32
	n := copyKeys(&keys, chain)
	if m.free == 0 {
		touched = m.warmSplits(n)
	}
	return touched + m.warmKeys(&keys, n)
}

// warmSplits touches the first elements of the buckets that are split next.
func (m *Map) warmSplits(n int) (touched uint32) {
	x := &m.index
	for b := x.heads.used; n > 0; n-- {
		from := b & (x.mask >> 1)
		if b > x.mask {
			from = b & x.mask
		}
		if from < x.heads.used {
			touched += m.entries.at(*x.heads.at(from)).chain
		}
		b++
	}
	return touched
}

func copyKeys(keys *[warmGroup]uint32, chain []uint64) int {
	n := min(len(chain), warmGroup)
	for i, hash := range chain[:n] {
		keys[i] = uint32(hash)
	}
	return n
}

// warmOldest touches what removing the oldest locations of an incarnation will.
func (m *Map) warmOldest(in *incarnation) (touched uint32) {
	var keys [warmGroup]uint32
	n := 0
	for i := in.oldest; i != 0 && n < warmGroup; n++ {
		e := m.entries.at(i)
		keys[n] = uint32(e.hash)
		i = e.newer
	}
	return m.warmKeys(&keys, n)
}

func (m *Map) warmKeys(keys *[warmGroup]uint32, n int) (touched uint32) {
	for i, key := range keys[:n] {
		keys[i] = *m.index.head(key)
	}
	for _, i := range keys[:n] {
		touched += m.entries.at(i).chain
	}
	return touched
}

// warmGrowth touches what the index will move when entries never used before are
// taken, as they are while the map fills.
func (m *Map) warmGrowth() (touched uint32) {
	if m.free != 0 {
		return 0
	}
	var keys [warmGroup]uint32
	for k := range keys {
		keys[k] = m.index.splits(uint32(k))
	}
	return m.warmKeys(&keys, warmGroup)
}
