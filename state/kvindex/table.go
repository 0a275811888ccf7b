package kvindex

import (
	"math/bits"
	"unsafe"
)

// Loads of a table in 1/64, and by how much it grows a cycle. What an entry more or less
// moves rises with the square of what is free, so it is the fullest part that counts, the
// one that has not been spread out yet: beyond growLoad there, each new entry has a batch
// of it spread out until the cycle is over, and the table is 0.77 full.
const (
	growLoad   = 55 // 0.86
	fullLoad   = 56 // 0.88: without memory to grow a table is full here
	denseLoad  = 60 // 0.94: or where its fullest part is so full
	shrinkLoad = 36 // 0.56
	// Where many entries have the same hash, a search runs past all those of the hashes
	// before: such a table is looser.
	looseGrowLoad   = 38 // 0.59
	looseShrinkLoad = 26 // 0.41
	cyclePart       = 8  // a cycle grows by one eighth
	minPlaces       = 64
	near            = 8 // places that findNear compares at once
)

// table is an open-addressing hash table whose entries lie in the order of their
// hashes (ordered linear probing): an entry's home is proportional to its hash,
// its place is the home or the next places after it, and there is no empty place
// between the two. Several entries may have the same hash; they lie side by side.
//
// It grows by a few places at a time. Between a and b places, entries whose home among
// a is below f are kept at that, all others at their home among b. Growing lowers
// f and spreads out what had its home there; shrinking raises it. Both homes rise
// with the hash and b >= a, so the order holds throughout, and whoever goes through
// a table by hash misses nothing, whatever moves meanwhile.
//
// Hashes must be uniform and not 0.
type table[V any] struct {
	// What a search needs comes first, on the cache line of a shard's lock.
	chunks  []*chunk[V] // the last one is the void: every search ends
	a, b, f uint64

	pool  *pool[V]
	owned int // chunks that are not the void
	room  int // places, as far as spread out
	n     int // entries
	loose bool
	moved []moved[V]
}

// moved is an entry on its way to another place.
type moved[V any] struct {
	hash, place uint64
	val         V
}

func newTable[V any](p *pool[V]) table[V] {
	return table[V]{
		pool: p, chunks: []*chunk[V]{p.void, p.void},
		a: minPlaces, b: minPlaces, f: minPlaces, room: minPlaces,
	}
}

// scale is the home of a hash among n places.
func scale(hash, n uint64) uint64 {
	home, _ := bits.Mul64(hash, n)
	return home
}

// home is computed both ways: which one counts can't be foreseen.
func (t *table[V]) home(hash uint64) uint64 {
	home, wider := scale(hash, t.a), scale(hash, t.b)
	if home >= t.f {
		home = wider
	}
	return home
}

// at is what is at a place.
func (t *table[V]) at(place uint64) *entry[V] { return t.chunks[place>>chunkBits].at(place) }

func (t *table[V]) hashAt(place uint64) uint64 { return t.at(place).hash() }

// val is the value at a place that has an entry.
func (t *table[V]) val(place uint64) *V { return &t.at(place).val }

// find returns the place of the first entry of a hash, or where it would be put.
func (t *table[V]) find(hash uint64) (place uint64, ok bool) {
	return t.findFrom(t.home(hash), hash)
}

func (t *table[V]) findFrom(place, hash uint64) (uint64, bool) {
	for {
		c := t.chunks[place>>chunkBits]
		for i := place & chunkMask; i < chunkLen; i++ {
			// An empty place is 0, and 0-1 is not less than anything.
			if x := c.at(i).hash(); x-1 >= hash-1 {
				return place&^chunkMask | i, x == hash
			}
		}
		place = place&^chunkMask + chunkLen
	}
}

// findNear is findFrom for a hash that is most likely among the next few places: it
// compares them all, since to guess how many there are costs more than that.
func (t *table[V]) findNear(place, hash uint64) (uint64, bool) {
	if place&chunkMask > chunkLen-near {
		return t.findFrom(place, hash)
	}
	less := uint64(0)
	few := (*[near]entry[V])(unsafe.Pointer(t.at(place)))
	for i := range few {
		_, below := bits.Sub64(few[i].hash()-1, hash-1, 0)
		less += below
	}
	if less == near {
		return t.findFrom(place+near, hash)
	}
	return place + less, t.hashAt(place+less) == hash
}

// seek returns the place of the first entry whose hash is not below the given
// one; ok is false where there is none.
func (t *table[V]) seek(hash uint64) (place uint64, ok bool) {
	place, _ = t.find(max(hash, 1))
	for {
		if t.hashAt(place) != 0 {
			return place, true
		}
		place++
		if place&chunkMask == 0 {
			for place>>chunkBits < uint64(len(t.chunks)) && t.chunks[place>>chunkBits] == t.pool.void {
				place += chunkLen
			}
		}
		if place>>chunkBits >= uint64(len(t.chunks)) {
			return 0, false
		}
	}
}

// free is the first empty place from one on.
func (t *table[V]) free(place uint64) uint64 {
	for t.hashAt(place) != 0 {
		place++
	}
	return place
}

// own makes sure that a place can be written to; false at the bound of memory.
func (t *table[V]) own(place uint64) bool {
	i := place >> chunkBits
	if t.chunks[i] != t.pool.void {
		return true
	}
	c := t.pool.take()
	if c == nil {
		return false
	}
	t.chunks[i] = c
	t.owned++
	if i == uint64(len(t.chunks))-1 {
		t.chunks = append(t.chunks, t.pool.void)
	}
	return true
}

// insert puts an entry at a place that find or a walk along equal hashes returned,
// and moves those after it on. false: no memory, nothing is changed.
func (t *table[V]) insert(place, hash uint64, val V) bool {
	free := t.free(place)
	if !t.own(free) {
		return false
	}
	t.shift(place, free)
	t.at(place).set(hash, val)
	t.n++
	return true
}

// shift moves the entries from a place on one place on, into the empty one.
func (t *table[V]) shift(place, free uint64) {
	for free > place {
		i := free & chunkMask
		if i == 0 {
			*t.at(free) = *t.at(free - 1)
			free--
			continue
		}
		c, from := t.chunks[free>>chunkBits], i-min(i, free-place)
		copy(c[from+1:i+1], c[from:i])
		free -= i - from
	}
}

// remove takes out the entry at a place and moves those after it back.
func (t *table[V]) remove(place uint64) {
	t.n--
	for e := t.at(place); ; {
		place++
		next := t.at(place)
		hash := next.hash()
		if hash == 0 || t.home(hash) == place {
			*e = entry[V]{}
			return
		}
		*e, e = *next, next
	}
}
