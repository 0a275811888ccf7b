package rival

import (
	"math/bits"
	"slices"
	"time"
)

// none is the place of a node or an entry that isn't there.
const none = -1

// index says which backends have something to do with which unit. Everything
// lies in slices without pointers, found by one hash lookup a unit: a walk costs
// what the prompt's known part is long, whatever the number of backends.
type index struct {
	backends int
	words    int // of a set of backends
	byName   table
	nodes    []node
	sets     []uint64 // one set of backends a node
	entries  []entry
	tables   [][]int32 // entries by backend, for nodes of many holders

	freeNodes, freeEntries, freeTables []int32
	// path holds the nodes of the names asked for last, up to the first unknown one.
	path  []int32
	alive []uint64
}

// node is a unit that some backend has to do with.
type node struct {
	name    uint64
	first   int32 // its entries, linked by entry.next, where it has no table
	table   int32
	holders int32
	owner   int16 // the backend that it was made for
}

// entry is one backend at one node.
type entry struct {
	at           time.Duration // when it was last touched
	node, next   int32
	older, newer int32 // in its list, by the time of the last touch
	refs         int32
	backend      int16
}

// chainLimit is how many entries are searched one by one; a node of more
// holders has a table.
const chainLimit = 8

func newIndex(backends int) *index {
	words := (backends + 63) / 64
	return &index{backends: backends, words: words, byName: newTable(), alive: make([]uint64, words)}
}

// look sets path to the nodes of names, up to the first unknown one.
func (x *index) look(names []uint64) {
	x.path = x.path[:0]
	for _, name := range names {
		i := x.byName.find(name)
		if i == none {
			return
		}
		x.path = append(x.path, i)
	}
}

// extend makes nodes for the names that path does not reach. Path must be that
// of names, and nothing may have been removed since.
func (x *index) extend(names []uint64, owner int) {
	for _, name := range names[min(len(names), len(x.path)):] {
		at := x.byName.at(name)
		i := x.byName.slots[at].node - 1
		if i == none {
			i = x.newNode(name, owner)
			x.byName.fill(at, name, i)
		}
		x.path = append(x.path, i)
	}
}

func (x *index) newNode(name uint64, owner int) int32 {
	i := int32(len(x.nodes))
	if k := len(x.freeNodes); k > 0 {
		i, x.freeNodes = x.freeNodes[k-1], x.freeNodes[:k-1]
	} else {
		x.nodes = append(doubled(x.nodes), node{})
		x.sets = doubled(x.sets)
		for range x.words {
			x.sets = append(x.sets, 0)
		}
	}
	x.nodes[i] = node{name: name, first: none, table: none, owner: int16(owner)}
	return i
}

// doubled makes room for twice as much in a slice that is full: append alone
// would copy it four times as often.
func doubled[T any](s []T) []T {
	if len(s) < cap(s) {
		return s
	}
	return slices.Grow(s, len(s)+1)
}

func (x *index) set(i int32) []uint64 {
	return x.sets[int(i)*x.words : (int(i)+1)*x.words]
}

func (x *index) holds(i int32, backend int) bool {
	return x.sets[int(i)*x.words+backend/64]>>(backend%64)&1 != 0
}

// find returns the backend's entry at a node, or none.
func (x *index) find(i int32, backend int) int32 {
	if !x.holds(i, backend) {
		return none
	}
	if t := x.nodes[i].table; t != none {
		return x.tables[t][backend]
	}
	for e := x.nodes[i].first; e != none; e = x.entries[e].next {
		if int(x.entries[e].backend) == backend {
			return e
		}
	}
	return none
}

// link makes the backend's entry at a node where it has none.
func (x *index) link(i int32, backend int) int32 {
	e := int32(len(x.entries))
	if k := len(x.freeEntries); k > 0 {
		e, x.freeEntries = x.freeEntries[k-1], x.freeEntries[:k-1]
	} else {
		x.entries = append(doubled(x.entries), entry{})
	}
	x.entries[e] = entry{node: i, next: none, older: none, newer: none, backend: int16(backend)}
	x.sets[int(i)*x.words+backend/64] |= 1 << (backend % 64)
	n := &x.nodes[i]
	n.holders++
	if n.table == none && n.holders > chainLimit {
		x.widen(n)
	}
	if n.table != none {
		x.tables[n.table][backend] = e
	} else {
		x.entries[e].next, n.first = n.first, e
	}
	return e
}

// widen gives a node a table in place of its chain.
func (x *index) widen(n *node) {
	if k := len(x.freeTables); k > 0 {
		n.table, x.freeTables = x.freeTables[k-1], x.freeTables[:k-1]
	} else {
		n.table = int32(len(x.tables))
		x.tables = append(x.tables, make([]int32, x.backends))
	}
	for e := n.first; e != none; e = x.entries[e].next {
		x.tables[n.table][x.entries[e].backend] = e
	}
	n.first = none
}

// unlink removes an entry, and its node with the last one.
func (x *index) unlink(e int32) {
	gone := &x.entries[e]
	i, n := gone.node, &x.nodes[gone.node]
	x.sets[int(i)*x.words+int(gone.backend)/64] &^= 1 << (gone.backend % 64)
	if n.table == none {
		at := &n.first
		for *at != e {
			at = &x.entries[*at].next
		}
		*at = gone.next
	}
	x.freeEntries = append(x.freeEntries, e)
	if n.holders--; n.holders > 0 {
		return
	}
	if n.table != none {
		x.freeTables = append(x.freeTables, n.table)
	}
	x.byName.remove(n.name)
	x.freeNodes = append(x.freeNodes, i)
}

// leading writes how many units at the beginning each backend has, without a gap.
func (x *index) leading(names []uint64, match []int) {
	clear(match)
	x.look(names)
	if len(x.path) == 0 {
		return
	}
	copy(x.alive, x.set(x.path[0]))
	for depth, i := range x.path[1:] {
		any := uint64(0)
		for w, held := range x.set(i) {
			eachBit(w, x.alive[w]&^held, func(b int) { match[b] = depth + 1 })
			x.alive[w] &= held
			any |= x.alive[w]
		}
		if any == 0 {
			return
		}
	}
	for w, set := range x.alive {
		eachBit(w, set, func(b int) { match[b] = len(x.path) })
	}
}

// counted writes how many units each backend has up to the first that nobody
// has, whether or not it has those before.
func (x *index) counted(names []uint64, match []int) {
	clear(match)
	x.look(names)
	for _, i := range x.path {
		for w, held := range x.set(i) {
			eachBit(w, held, func(b int) { match[b]++ })
		}
	}
}

// deepest writes the place behind the last unit that each backend has, up to the
// first that nobody has.
func (x *index) deepest(names []uint64, match []int) {
	clear(match)
	x.look(names)
	for depth, i := range x.path {
		for w, held := range x.set(i) {
			eachBit(w, held, func(b int) { match[b] = depth + 1 })
		}
	}
}

// trunk returns how many units at the beginning somebody has, and who made the
// last of them, or has it now where that one has lost it; none for no unit.
func (x *index) trunk(names []uint64) (depth, backend int) {
	x.look(names)
	depth = len(x.path)
	if depth == 0 {
		return 0, none
	}
	last := x.path[depth-1]
	n := &x.nodes[last]
	if x.holds(last, int(n.owner)) {
		return depth, int(n.owner)
	}
	for w, held := range x.set(last) {
		if held != 0 {
			n.owner = int16(w*64 + bits.TrailingZeros64(held))
			break
		}
	}
	return depth, int(n.owner)
}

func eachBit(word int, set uint64, visit func(int)) {
	for ; set != 0; set &= set - 1 {
		visit(word*64 + bits.TrailingZeros64(set))
	}
}
