package router

import (
	"context"
	"time"

	"kvca/state"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

// Loads is where work is booked.
type Loads interface {
	// Reserve chooses the cheapest candidate and books the order on it in one
	// indivisible step. It never fails: where the authority can't be asked in
	// time it decides from what it knows and marks the grant degraded.
	Reserve(ctx context.Context, o *ledger.Order) ledger.Grant
	// Peek chooses as Reserve would, from what is known here, and books nothing.
	Peek(o *ledger.Order) ledger.Grant
	Prefilled(id ledger.ID) bool
	Release(id ledger.ID) bool
	Load(s state.Slot) ledger.Load
	// Reset makes a slot a new backend without load.
	Reset(s state.Slot)
}

// Locations is where it is known which backend holds which block.
type Locations interface {
	Walk(chain []uint64, now time.Duration, w *blockmap.Walk)
	Learn(s state.Slot, generation uint64, chain []uint64, now time.Duration) blockmap.News
	Expect(s state.Slot, chain []uint64) bool
	Unexpect(s state.Slot, chain []uint64)
	Forget(s state.Slot, chain []uint64, from int)
	Generation(s state.Slot) uint64
	Void(s state.Slot)
	SetMirror(s state.Slot, blocks int)
	Held(s state.Slot) int
	Age(s state.Slot, now time.Duration) (age time.Duration, full bool)
	Vacuum(now time.Duration, limit int) (expired int, more bool)
}

// Teller is what Locations that many nodes share can do besides: tell the others
// early. The next turn of a conversation may come to another node right after the
// answer, and a batch that has left by then need not hurry.
type Teller interface {
	// Announce tells that s is about to hold chain, whose first known blocks it
	// holds already. False: nothing was told, and Learn will tell it.
	Announce(s state.Slot, generation uint64, chain []uint64, known int) bool
	// Confirm is Learn for what was announced.
	Confirm(s state.Slot, generation uint64, chain []uint64, now time.Duration)
	// Retract takes an announcement back: the request came to nothing.
	Retract(s state.Slot, generation uint64, chain []uint64, known int)
}

// local is a ledger that this node alone decides on.
type local struct {
	*ledger.Ledger
	node string
}

// LocalLoads books on l, which no other node shares; node is its name.
func LocalLoads(l *ledger.Ledger, node string) Loads { return local{l, node} }

func (l local) Reserve(_ context.Context, o *ledger.Order) ledger.Grant {
	g := l.Ledger.Reserve(o)
	g.Owner = l.node
	return g
}

func (l local) Peek(o *ledger.Order) ledger.Grant {
	g := l.Ledger.Peek(o)
	g.Owner = l.node
	return g
}
