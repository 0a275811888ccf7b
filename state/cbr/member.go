package cbr

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// member is a member of an object still being read, by offsets into the output:
// its key is out[key:value], its encoded value out[value:end].
type member struct{ key, value, end uint32 }

// run is what stands for all members of one key: the first and the last of them,
// by their place among the encoder's members. Where two runs differ in head, the
// order of their heads is that of their keys.
type run struct {
	head        uint64
	first, last uint32
}

// keySet remembers which keys an object has had, by one bit of 64 each. It may
// take a new key for one seen before, never the other way round, and so saves
// nearly all objects the search for members that repeat.
type keySet uint64

// add adds the key of a bit and reports whether it may have been there.
func (set *keySet) add(bit keySet) bool {
	seen := *set&bit != 0
	*set |= bit
	return seen
}

// keyBit is the bit of a member's key: of its length and its first and last eight
// bytes, where keys of one object differ. The first eight may reach past the end
// of a short key, and of the output, into the slack that reading the key has left.
func (e *Encoder) keyBit(m member) keySet {
	n := m.value - m.key
	word := binary.LittleEndian.Uint64(e.out[m.key : m.key+8])
	if n < 8 {
		word &= 1<<(8*n) - 1
	} else {
		word ^= 3 * binary.LittleEndian.Uint64(e.out[m.value-8:m.value])
	}
	return 1 << ((word ^ uint64(n)) * 0x9E3779B97F4A7C15 >> 58)
}

// beginMember reads a key and opens a member for it.
func (e *Encoder) beginMember() bool {
	key := uint32(len(e.out))
	if !e.key() {
		return false
	}
	e.members = append(e.members, member{key: key, value: uint32(len(e.out))})
	return true
}

// endMember closes the member at that place, the last one open, after its value.
func (e *Encoder) endMember(at int) *member {
	m := &e.members[at]
	m.end = uint32(len(e.out))
	return m
}

func (e *Encoder) keyOf(m member) []byte   { return e.out[m.key:m.value] }
func (e *Encoder) valueOf(m member) []byte { return e.out[m.value:m.end] }

// object reads an object whose members count as written, order included. Of
// members with one key the last value counts, at the place of the first, as in
// the dictionary that an engine makes of it.
func (e *Encoder) object() bool {
	e.out = append(e.out, tagObject)
	base, keys, repeats := len(e.members), keySet(0), false
	more, ok := e.enter('}')
	for more {
		at := len(e.members)
		if !e.beginMember() || !e.value() {
			return false
		}
		m := e.endMember(at)
		repeats = keys.add(e.keyBit(*m)) || repeats
		more, ok = e.next('}')
	}
	if repeats {
		e.keepLast(base)
	}
	e.members = e.members[:base]
	e.out = append(e.out, tagEnd)
	return ok
}

// keepLast rewrites an object, without its frame, to have each key once.
func (e *Encoder) keepLast(base int) {
	count := len(e.members) - base
	runs := e.runsOf(base, topLevel)
	if len(runs) == count {
		return
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	e.rewrite(base, runs)
}

// runsOf sorts the members from base on by key, as objects of the shape have them,
// and makes one run of those with the same key. The result is valid until the
// next call.
func (e *Encoder) runsOf(base int, s shape) []run {
	runs := slices.Grow(e.runs[:0], len(e.members)-base)
	for i := base; i < len(e.members); i++ {
		runs = append(runs, run{e.head(s, e.members[i]), uint32(i), uint32(i)})
	}
	e.runs = runs
	slices.SortFunc(runs, func(a, b run) int {
		if c := e.compareRuns(a, b); c != 0 {
			return c
		}
		return cmp.Compare(a.first, b.first)
	})
	merged := runs[:0]
	for _, r := range runs {
		if n := len(merged); n > 0 && e.compareRuns(merged[n-1], r) == 0 {
			merged[n-1].last = r.last
		} else {
			merged = append(merged, r)
		}
	}
	return merged
}

// head is the rank of a key and the start of it.
func (e *Encoder) head(s shape, m member) uint64 {
	key := e.keyOf(m)
	start := binary.BigEndian.Uint64(e.out[m.key : m.key+8])
	if n := len(key); n < 8 {
		start &^= 1<<(64-8*n) - 1
	}
	return uint64(s.rank(key))<<62 | start>>2
}

// compareRuns orders runs by their keys.
func (e *Encoder) compareRuns(a, b run) int {
	if a.head != b.head {
		return cmp.Compare(a.head, b.head)
	}
	return bytes.Compare(e.keyOf(e.members[a.first]), e.keyOf(e.members[b.first]))
}

// rewrite replaces the members from base on, in the output and in the encoder's
// list, by the given ones: each run's first key with its last value.
func (e *Encoder) rewrite(base int, runs []run) {
	start := e.members[base].key
	e.swap = slices.Grow(e.swap[:0], len(e.out)-int(start))
	moved := slices.Grow(e.moved[:0], len(runs))
	for _, r := range runs {
		m := member{key: start + uint32(len(e.swap))}
		e.swap = append(e.swap, e.keyOf(e.members[r.first])...)
		m.value = start + uint32(len(e.swap))
		e.swap = append(e.swap, e.valueOf(e.members[r.last])...)
		m.end = start + uint32(len(e.swap))
		moved = append(moved, m)
	}
	e.moved = moved
	e.out = append(e.out[:start], e.swap...)
	e.members = append(e.members[:base], moved...)
}
