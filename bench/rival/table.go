package rival

// table finds the node of a name: open addressing, at most two thirds full. A
// map would do, at twice the time: a name that is new costs one probe here, not a
// search and an insertion.
type table struct {
	slots []slot // their number is a power of two
	used  int
	shift int // of a spread name to its slot
}

type slot struct {
	name uint64
	node int32 // and one; 0 for an empty slot
}

func newTable() table { return table{slots: make([]slot, 1<<10), shift: 64 - 10} }

func (t *table) home(name uint64) int { return int(name * 0x9e3779b97f4a7c15 >> t.shift) }

// at returns the slot of a name, or the empty one where it would be.
func (t *table) at(name uint64) int {
	mask := len(t.slots) - 1
	for i := t.home(name); ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.node == 0 || s.name == name {
			return i
		}
	}
}

// find returns the node of a name, or none.
func (t *table) find(name uint64) int32 { return t.slots[t.at(name)].node - 1 }

// fill puts a node into the empty slot that at returned for its name.
func (t *table) fill(i int, name uint64, node int32) {
	t.slots[i] = slot{name, node + 1}
	if t.used++; t.used*3 > len(t.slots)*2 {
		t.grow()
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	t.shift--
	for _, s := range old {
		if s.node != 0 {
			t.slots[t.at(s.name)] = s
		}
	}
}

// remove takes out a name that is there, and closes the gap: each later slot of
// the run that may lie in it moves up.
func (t *table) remove(name uint64) {
	mask := len(t.slots) - 1
	gap := t.at(name)
	for i := (gap + 1) & mask; t.slots[i].node != 0; i = (i + 1) & mask {
		if h := t.home(t.slots[i].name); (i-h)&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = slot{}
	t.used--
}
