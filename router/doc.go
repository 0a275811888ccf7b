// Package router makes one decision per request: which backend, reserved in the
// same step, and what is learned from the answer.
//
// A request's way through it:
//
//	Route   eligible backends -> walk the chain -> a policy turns both into an
//	        order -> Loads chooses and books -> the chain is expected there
//	Begin   the backend began a successful response: its locations are learned,
//	        the expectation and the novel-block load are given back
//	Close   the request is over, however it ended: what is left is given back
//
// The Ticket that Route returns carries these steps and takes each at most once,
// so a handler that defers Close can't leak load, whatever happens to it.
//
// The router sees the rest of the system through two interfaces of its own,
// Loads and Locations. On one node they are the ledger and the block map; in a
// cluster the same interfaces ask owners and tell peers. Facts about backends
// (standing, speed, traffic that bypasses us) are written into Backend by the
// pool that watches the engines; the router only reads them.
//
// There is one file per policy. A policy does not choose: it writes an order
// (candidates with their costs, and how load counts), and the choice is made
// where the load is known exactly.
//
// Goroutines: none but Run, which vacuums the block map until its context ends.
// Every method of Router may be called from any goroutine.
package router
