// Package ledger books the load of backends: how much prefill work and how many
// active requests this gateway (later: this cluster) has promised to each.
//
// Reserve chooses the candidate that costs least and adds the request's load to
// it in one critical section, so that of a thousand requests that arrive at once
// no two see the same idle backend. Prefilled gives back the novel-block load,
// Release gives back whatever is left. Both may be called any number of times, in
// any order, before or after Reserve: each id is booked at most once and given
// back at most once, so no counter goes below zero and none leaks.
//
// What is bounded: one hold per live request (MaxHeld, beyond it Reserve still
// chooses but books nothing and says so), and the ids of recent releases
// (two generations of forgetAfter), which is how long a Reserve may come later
// than its own Release and still book nothing.
//
// A holder that lost messages heals by Replace: its full set of live holds takes
// the place of what the ledger believes, it is never added to it.
//
// One mutex guards everything. It is held for one pass over the candidates:
// 4,000 of them take about ten microseconds.
package ledger
