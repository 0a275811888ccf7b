package rival

import (
	"math/rand/v2"
	"testing"
)

// Names come and go in a table that is full enough for long runs.
func TestTableAgreesWithAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	tab, want := newTable(), make(map[uint64]int32)
	for step := range 200_000 {
		name := mix(uint64(random.IntN(1200)))
		node, there := want[name]
		switch at := tab.at(name); {
		case there && tab.slots[at].node != node+1, !there && tab.slots[at].node != 0:
			t.Fatalf("step %d: found node %d, want %d, %v", step, tab.slots[at].node-1, node, there)
		case there:
			tab.remove(name)
			delete(want, name)
		default:
			tab.fill(at, name, int32(step))
			want[name] = int32(step)
		}
		if tab.used != len(want) {
			t.Fatalf("step %d: %d used, want %d", step, tab.used, len(want))
		}
	}
	for name, node := range want {
		if tab.find(name) != node {
			t.Errorf("%x: %d, want %d", name, tab.find(name), node)
		}
	}
	if len(tab.slots) != 1024 {
		t.Errorf("%d slots, want 1024: the runs are not long", len(tab.slots))
	}
}
