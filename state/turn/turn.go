// Package turn is what nodes say to each other about the turns of requests that wait for
// room in a pool of backends. One node calls for each pool: it knows who waits on all
// of them, and whose turn it is when the pool has room.
//
// A node puts each of its waiters before the caller (Wait), and takes it back where it
// gives up (Leave). The caller says when its turn has come (Go). Who was let in is
// booked a moment later (Booked), and ends at some time (Freed): both are told behind
// the loads that show it, so that the caller's figures are no older than what it hears.
// That anybody waits at all the caller tells everyone (Crowded, Empty), so that nobody
// passes those who do.
//
// All of this may be lost. A waiter that its caller is not heard of for a second is
// called by its own node.
package turn

import "time"

// Op is what a message says.
type Op uint8

// What messages say, from a node to a pool's caller or back.
const (
	// Wait puts a waiter before the caller.
	Wait Op = 1 + iota
	// Leave takes a waiter back, whether or not its turn has come meanwhile.
	Leave
	// Booked says that one whose turn had come now shows in the loads, or never will.
	Booked
	// Freed says that a request of the pool has ended.
	Freed
	// Go says that a waiter's turn has come.
	Go
	// No says that the caller does not call for the pool.
	No
	// Crowded tells all nodes that somebody waits for the pool, again while that is so.
	Crowded
	// Empty tells all nodes that nobody does any more.
	Empty

	// Ops is more than any Op.
	Ops
)

// MaxName bounds the name of a pool or of a tenant in a message, in bytes.
const MaxName = 1024

// Message is one thing that is said.
type Message struct {
	Op Op
	// Pool is what is waited for.
	Pool string
	// ID is the waiter's number at its node, for Wait, Leave and Go.
	ID uint64

	// Of a waiter: whose it is, its class (0 is first), its tenant's weight, how long it
	// has waited and how long it may yet, and what tells the set of backends apart that
	// it waits for: a node that knows others does not call for it. For Wait only.
	Tenant       string
	Class        uint8
	Weight       float64
	Waited, Left time.Duration
	Backends     uint64
}
