package router

import (
	"kvca/state/cbr"
	"kvca/state/chain"
)

// Request is what a decision needs to know of a request. Chain must stay as it
// is until the ticket is closed.
type Request struct {
	// Model is the name that its backends know it by.
	Model string
	// Phase is by the roles of its messages; Route makes a request without a
	// complete block a bootstrap one.
	Phase cbr.Phase
	// Chain holds the hashes of the complete blocks, empty for endpoints
	// whose prompts are not cached.
	Chain []uint64
	// Marks are the ends of its last messages, in order; the last one is learned
	// with the chain.
	Marks []chain.Mark
	// Bytes is the length of the CBR, or of the body where there is none.
	Bytes int64
	// SkipsCache marks a request that computes its whole prompt whatever is
	// cached (prompt logprobs): all of it is novel, and it teaches nothing.
	SkipsCache bool
	// Index is what the precise index holds of the prompt, nil where it was not asked.
	Index *IndexAnswer
	// Fallback says why the index was not asked though it covers the model; empty
	// where it was, or where it does not. It is one of a closed set.
	Fallback string
	// Unbelieved leaves what the index does not know to load: nothing is believed of
	// backends that it does not cover.
	Unbelieved bool
	// Pin is the backend that alone can answer (it keeps the response that this
	// one continues), nil for none.
	Pin *Backend
	// Tried holds the backends that failed this request before.
	Tried []*Backend
	// Detail asks for the decision's candidates, which cost time to list.
	Detail bool
}

func (q *Request) tried(b *Backend) bool {
	for _, t := range q.Tried {
		if t == b {
			return true
		}
	}
	return false
}
