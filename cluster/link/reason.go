package link

import (
	"errors"
	"fmt"
	"os"
)

// A reason is why a link ended, for the counter; a closed set.
type reason string

const (
	byLease     reason = "lease"      // the peer was silent for too long
	byRead      reason = "lost"       // the connection broke, or the other side closed it without a word
	byWrite     reason = "write"      // nothing could be written, or not in time
	byGarbage   reason = "garbage"    // what came was no frame
	byPeer      reason = "peer"       // the other side said that it closes
	byReplaced  reason = "replaced"   // a newer connection of the same node took its place
	byNotMember reason = "not_member" // membership does not know the node
	byCaller    reason = "caller"     // Peer.Close
	byShutdown  reason = "shutdown"   // Run's context ended
)

// An ending is why a link ended, for the counter and in words.
type ending struct {
	reason reason
	err    error
}

func (e *ending) Error() string { return e.err.Error() }
func (e *ending) Unwrap() error { return e.err }

func ended(r reason, err error) *ending { return &ending{r, err} }

func endedf(r reason, format string, args ...any) *ending {
	return &ending{r, fmt.Errorf(format, args...)}
}

// said says whether the other side is told before the connection is closed:
// where it still listens and would wonder.
func (r reason) said() bool {
	return r == byReplaced || r == byNotMember || r == byCaller || r == byShutdown || r == byGarbage
}

// A refusal is a handshake that one side ended on purpose.
type refusal struct {
	code   refusalCode
	text   string
	theirs bool
	peer   string // the other side's name
}

type refusalCode uint8

// Sent in refuse frames; numbers are for ever. Unknown ones count as other.
const (
	refusedOther      refusalCode = iota
	refusedProtocol               // no common version
	refusedName                   // not the node that was dialled, or our own name
	refusedCheck                  // Handler.Check
	refusedDuplicate              // there is a link already, and it is the one to keep
	refusedCrowded                // too many links of nodes that membership does not know
	refusedClosing                // the node is about to stop
	refusedCredential             // an agent's: unknown, or not proved
)

var refusalNames = []string{"other", "protocol", "name", "check", "duplicate", "crowded", "closing", "credential"}

func (c refusalCode) String() string {
	if int(c) < len(refusalNames) {
		return refusalNames[c]
	}
	return refusalNames[refusedOther]
}

// passing says whether the refusal is about the moment rather than about who the
// peer is: no one need read of it, and dialling need not slow down.
func (c refusalCode) passing() bool {
	return c == refusedDuplicate || c == refusedCrowded || c == refusedClosing
}

func (r *refusal) Error() string {
	if r.theirs {
		return "refused by the other side: " + r.text
	}
	return "refused: " + r.text
}

// maxReason bounds what the other side may make us log.
const maxReason = 512

func (r *refusal) body() []byte {
	text := r.text[:min(len(r.text), maxReason)]
	return append([]byte{byte(r.code)}, text...)
}

func theirRefusal(body []byte) *refusal {
	r := &refusal{theirs: true}
	if len(body) > 0 {
		r.code = refusalCode(body[0])
		r.text = string(body[1:min(len(body), 1+maxReason)])
	}
	return r
}

// failure names what went wrong before a link was up, for the counter.
func failure(err error) string {
	switch {
	case errors.Is(err, errGarbage):
		return "garbage"
	case errors.Is(err, errTLS):
		return "tls"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "timeout"
	}
	return "lost"
}
