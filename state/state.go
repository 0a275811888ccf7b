// Package state is the pure core of KVCA: what a request is called (cbr, chain),
// which backend holds which block (blockmap), and how loaded each backend is
// (ledger). Packages below it start no goroutine, read no clock and do no I/O:
// time is an argument, so that one node and a cluster of them run the same way
// in production, in a test in virtual time, and in the simulator.
package state

// Slot is the small dense number by which the core knows a backend. The router
// hands out slots and may use one again after it has voided the block map's
// locations and the ledger's load of the backend that had it before.
type Slot uint16

// MaxSlots bounds how many backends one node can know.
const MaxSlots = 1 << 14
