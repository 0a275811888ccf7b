// Package ledger books the load of backends: how much prefill work and how many
// active requests this node has promised to each, and what it knows of other nodes'
// promises.
//
// Reserve chooses the candidate that costs least and adds the request's load to
// it in one critical section, so that of a thousand requests that arrive at once
// no two see the same idle backend. Prefilled gives back the novel-block load,
// Release gives back whatever is left. Both may be called any number of times, in
// any order, before or after Reserve: each id is booked at most once for its
// holder and given back at most once, so no counter goes below zero and none
// leaks.
//
// # Whose holds
//
// A hold belongs to the node that routed the request: Self, or a peer for which
// this node granted it as the owner of the backend. Self is the authority on its
// own holds, wherever they were granted; what is booked for a peer is what this
// node knows of that peer's. A holder's calls touch its own holds and no others.
//
// # Views
//
// All choosing reads views: per backend what Self holds, and what others hold.
// Others' part follows from the role of this node:
//
//	Owner     what it granted to peers
//	Learning  the greater of that and what the peers told: holds that the
//	          owner before granted are still to be re-asserted
//	Follower  what the owner said with its last answer (a note), for as long
//	          as two epochs; else what the peers told
//
// What a peer told is the subtotal of its own holds per backend, broadcast each
// epoch; Tell replaces the one before. A note is the owner's answer of how much
// others hold beyond this node's own (Others), so that it stays right while own
// holds come and go. A view is renewed with each change of what it consists of.
//
// # Healing
//
// Messages about holds may be lost, doubled and reordered; three rules heal that.
// Sets are replaced: Replace puts a holder's full set in the place of what is
// booked for it, it adds nothing. Releases are remembered: whatever would book an
// id after its release (a late Reserve, Adopt or Replace) books nothing. Leases
// end: Drop forgets all that was granted to a peer and told by it. A Replace that
// overtakes, or is overtaken by, a Reserve of the same holder can drop that hold
// until the next Replace; ids whose grant is on its way are therefore named as
// pending.
//
// Reset makes a slot another backend. Holds of the one before carry an older
// incarnation: they count for nothing, are listed to nobody, and their release is
// harmless.
//
// # Bounds
//
//   - Holds: MaxHeld of this node, and again MaxHeld of all peers together, about
//     100 bytes each. Beyond that Reserve still chooses but books nothing and says
//     so; Adopt and Replace leave out what has no room.
//   - Tables: a row and a view per slot seen (88 bytes), and for each of at most
//     MaxHolders two loads per slot seen (32 bytes), grown when needed: 35 MB with
//     64 nodes and 16,384 backends. Drop frees a peer's.
//   - Released ids: two generations of forgetAfter, which is how long a booking
//     may come later than its release and still book nothing.
//   - Values: what a peer claims of one hold or one subtotal is cut to a range in
//     which no sum can overflow.
//
// # Locking
//
// One mutex guards everything, and there are no goroutines. It is held for one
// pass at most: over the candidates (1,000 take about three microseconds), over
// one holder's holds, or over the slots. Replace takes holds over in pieces.
package ledger
