// Package live keeps the last ten minutes of a node's traffic and its last decisions
// in memory, for the page and for whoever asks /live and /decisions.
//
// # Data
//
// Traffic is counted by seconds: a ring of 600 buckets, each with counters and a
// histogram of times to the first byte. Decisions are a ring of the last 200, each
// with what became of its request. Prompts and answers are not in a record, so they
// can't get here either.
//
// # Who owns what
//
// A Live is told of each request on the request's goroutine (Ended). It copies what
// it keeps: two short critical sections, one small allocation, no wait on readers,
// who copy one bucket or one decision at a time. Run has the only goroutine, its
// caller's: once a second it notes what is in flight and waiting.
//
// The candidates of a decision cost time to list, so the proxy lists them only if
// WantsDetail says so: a few times a second while somebody looks at /decisions.
//
// # Bounds
//
// Half a MiB of buckets. A decision has at most 64 candidates, 6 KiB; 200 of them
// stay below 1.5 MiB. Answers: 600 seconds, 200 decisions.
package live
