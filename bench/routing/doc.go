// Package routing measures a decision alone: walk, choose and reserve, on a real
// router with a real block map and ledger, without HTTP, and without the
// encoding and hashing that come before.
//
// What a decision costs depends on how many backends there are, on how long the
// chain is and on who holds its blocks. So there are three kinds of requests:
// cold ones of which nothing is known; follow-ups of which all but the last two
// blocks are known, on one backend; and hot ones that begin with a prefix which
// every backend holds and go on with blocks that are new.
package routing
