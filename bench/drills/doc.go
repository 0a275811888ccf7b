// Package drills does to a running cluster what happens to clusters, under load,
// and measures what clients and the remaining nodes notice of it: Kill, Stop,
// Partition, and Rolling for what operators do on purpose.
//
// Load is of two kinds. Short requests at a fixed rate show whether clients are
// failed or delayed; streams that are held open are a load that stands still, so
// that each node's view of it can be compared with what the backends serve.
// A drill returns an error only where it can't go on; what was seen stands in its
// result, and the caller judges it.
package drills
