// Package nodes starts kvca processes that are one cluster, in front of the same
// backends, and does to them what happens to nodes: they are killed, stopped,
// continued and started again.
//
// A Cluster belongs to one goroutine; what asks nodes for something may be called
// from any. Every process is a child that Close ends, and every wait has a limit.
// The checks (Whole, Owned, Exact, SameMaps, AtRest) ask nodes once and say what
// is not so; Await repeats one until it holds.
package nodes
