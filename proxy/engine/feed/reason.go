package feed

import "fmt"

// Reason is why a source was reset.
type Reason uint8

// The reasons, a closed set.
const (
	ResetGap     Reason = iota // batches are missing that nobody has any more
	ResetRestart               // another process publishes, or can't be told from another
	ResetWrapped               // the replay ring no longer has the batch that was applied last
	ResetDamaged               // a batch could not be read
	ResetCleared               // the engine cleared its cache
	ResetDown                  // the event socket stayed down
	ResetResync                // all there is was asked for again
	ResetVoid                  // Feed.Void
	ResetGroups                // the blocks that were taken turned out to be another group's

	reasons = 9
)

var reasonNames = [reasons]string{"gap", "restart", "wrapped", "damaged", "cleared", "down", "resync", "void", "groups"}

// String is the name used in status and metrics.
func (r Reason) String() string {
	if r < reasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// counts are what a feed counts.
type counts struct {
	batches uint64 // applied, from either socket
	events  uint64 // in them
	gaps    uint64 // noticed
	replays uint64 // asked for
	damaged uint64 // batches that could not be read
	dropped uint64 // live batches for which there was no room
	overlap uint64 // live batches that were known already
	resets  [reasons]uint64
}
