package router

import (
	"math"
	"sync/atomic"

	"kvca/state"
)

// Standing says whether a backend may be chosen, and if not, why.
type Standing uint32

// The standings of a backend. Only Available backends are eligible; when a
// model has none, the router tries one anyway (see Router.Route).
const (
	Available Standing = iota
	Starting           // not yet probed
	Unhealthy          // health checks fail
	Broken             // its breaker is open
	Draining           // the operator drains it: never chosen, not even as a last resort
)

var standingNames = [...]string{"available", "starting", "unhealthy", "broken", "draining"}

// String is the name used in decisions and in status.
func (s Standing) String() string { return standingNames[s] }

// Backend is what a decision needs to know of one backend. Its owner (the pool
// that watches the engine) writes the facts, any number of decisions read them
// at the same time.
type Backend struct {
	// What every decision reads comes first, side by side: with thousands of backends
	// the way to their memory is what takes time.

	standing atomic.Uint32
	// Slot is its number in the block map and the ledger.
	Slot     state.Slot
	precise  atomic.Bool   // the precise index covers it
	remote   atomic.Bool   // it runs in another zone than this node
	slow     atomic.Uint64 // 1/speed, as float64 bits
	bypass   atomic.Int64
	room     atomic.Int64  // requests that its cache holds at once, 0 for no matter
	mirror   atomic.Int64  // bound on its locations in blocks, 0 none
	pressure atomic.Uint64 // on its cache: when, in milliseconds, and in levels (see cost.go)
	usage    atomic.Uint64 // share of its cache in use, as float64 bits

	cacheTokens atomic.Int64 // size of its KV cache, 0 unknown
	learned     atomic.Int64 // when an observation last counted for its mirror, 0 never

	// ID names the backend for people; it is unique in the fleet.
	ID string
	_  [128 - 96]byte // whole cache lines, so that none is shared
}

func newBackend(id string, slot state.Slot) *Backend {
	b := &Backend{ID: id, Slot: slot}
	b.SetStanding(Starting)
	b.SetSpeed(1)
	return b
}

// Standing is the last standing that was set; a new backend is Starting.
func (b *Backend) Standing() Standing { return Standing(b.standing.Load()) }

// SetStanding changes whether decisions from now on may choose the backend.
func (b *Backend) SetStanding(s Standing) { b.standing.Store(uint32(s)) }

// Speed is the backend's speed relative to others: 1 for an ordinary one.
func (b *Backend) Speed() float64 { return 1 / b.slowness() }

// slowness is 1 over the speed, which decisions multiply loads by.
func (b *Backend) slowness() float64 { return math.Float64frombits(b.slow.Load()) }

// SetSpeed sets the relative speed, clamped to [0.01, 1000]. Load counts for
// less on a faster backend; a slow start is a speed that grows to its weight.
func (b *Backend) SetSpeed(s float64) {
	if !(s >= 0.01) {
		s = 0.01
	}
	b.slow.Store(math.Float64bits(1 / min(s, 1000)))
}

// SetPrecise says whether the precise index covers the backend: then it holds what
// the index says, and nothing where that has heard nothing of it.
func (b *Backend) SetPrecise(on bool) { b.precise.Store(on) }

// Precise is whether the precise index covers the backend.
func (b *Backend) Precise() bool { return b.precise.Load() }

// SetRemote says whether the backend runs in another zone than this node.
func (b *Backend) SetRemote(on bool) { b.remote.Store(on) }

// Remote is whether the backend runs in another zone than this node.
func (b *Backend) Remote() bool { return b.remote.Load() }

// Bypass is the number of requests the engine reports beyond ours.
func (b *Backend) Bypass() int64 { return b.bypass.Load() }

// Above crowded of its cache in use an engine is near the point where requests
// wait for others to end, though it could compute; at full it is there.
const (
	crowded = 0.5
	full    = 0.9
	// mostRunning is more than any engine runs at once.
	mostRunning = 1 << 20
)

// SetUsage records what share of its cache the engine has in use, 0 to 1, for how
// many running requests. By that it is known how many its cache holds at once.
func (b *Backend) SetUsage(usage float64, running int64) {
	b.usage.Store(math.Float64bits(min(max(usage, 0), 1)))
	room := int64(0)
	if usage > crowded && running > 0 {
		room = max(int64(full*float64(min(running, mostRunning))/min(usage, 1)), 1)
	}
	b.room.Store(room)
}

// SetBypass records how many running and waiting requests the engine reported
// beyond those this gateway had reserved at that moment: traffic that bypasses
// us. Each counts as one active request. Negative values count as zero.
func (b *Backend) SetBypass(requests int64) { b.bypass.Store(max(requests, 0)) }
