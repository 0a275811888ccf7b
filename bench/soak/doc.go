// Package soak keeps a cluster busy with all that clients do while things go wrong
// around it, and tells which of the requests that failed may have.
//
//	World     nodes, backends in processes of their own, and what can be done to them
//	Faults    what goes wrong, one at a time; the order and the victims come from a seed
//	Clients   the traffic, behind a balancer that asks nodes whether they are ready
//	History   what was being done to whom, and when
//	Excuse    the rule by which a failure is one that nobody promised to prevent
//	Level     what a node uses: memory, goroutines, descriptors
//
// A fault is done, lasts, is undone, and is over once the cluster has healed: every
// node sees the others, all agree on the owners, and every backend is healthy. That it
// heals within HealTime is itself what is held against the product. Failures are judged
// at the end, by the whole history: a request that overlaps a fault may have begun
// before it.
//
// What is excused is little: what was at a node that was killed, or had no descriptors
// left; an answer of which the client had the first byte already, from a backend that
// was killed; and a backend's own garbage passed on as it came. Everything else is a
// broken promise.
//
// A World belongs to one goroutine, Clients have one each. Failures are kept up to
// maxFailures, then only counted.
package soak
