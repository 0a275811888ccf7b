package engine

import "time"

// Request is one prompt with the length of its answer.
type Request struct {
	// ID names the request in events and in Cancel; the caller keeps it unique among live requests.
	ID uint64
	// Blocks are the chained hashes of the prompt's full blocks, BlockTokens tokens each. Tokens beyond len(Blocks) blocks are
	// computed but never cached.
	Blocks []uint64
	// OutputBlocks continue the chain: hash i is of block PromptTokens/BlockTokens + i, which the answer completes. A follow-up
	// that repeats prompt and answer hits these. Without them the answer's blocks are dropped when the request ends.
	OutputBlocks []uint64
	PromptTokens int
	OutputTokens int
	// Anew has the whole prompt computed, whatever is cached of it; its blocks are cached as any.
	Anew bool
	// Ref is the caller's: the engine hands it back with what the request changes in the cache (see Watch).
	Ref any
}

// seq is a request inside the engine.
type seq struct {
	Request
	ready     time.Duration // when the front end hands it to the scheduler
	held      []int32       // its blocks, in order of the prompt
	target    int           // tokens to compute before the next one can be sampled
	computed  int           // tokens whose keys and values are in the cache
	generated int           // tokens sampled so far
	reported  int           // of these, told in events
	cached    int           // tokens of the prompt found in the cache when it was first admitted
	chunk     int           // tokens it computes in the current step
	admitted  bool          // has run before: a preempted one is not counted as a new query
	running   bool
	cancelled bool
}

// decoding says that all that is known has been computed but the last sampled token.
func (s *seq) decoding() bool { return s.computed >= s.target }

func (s *seq) remaining() int { return s.OutputTokens - s.generated }

// chain is the names of the blocks to compute: the prompt's, and after a preemption also those of the answer so far.
func (s *seq) chain(unit int) []uint64 {
	n := s.PromptTokens / unit
	if s.target/unit <= n || len(s.Blocks) < n {
		return s.Blocks
	}
	return append(s.Blocks[:n:n], s.OutputBlocks...)
}

// names returns the list in which the name of block i belongs, and its place there.
func (s *seq) names(i, promptBlocks int) (list []uint64, place int) {
	if i < promptBlocks {
		return s.Blocks, i
	}
	return s.OutputBlocks, i - promptBlocks
}

// hash returns the name of block i, if it has one.
func (s *seq) hash(i, promptBlocks int) (uint64, bool) {
	if i < promptBlocks {
		return at(s.Blocks, i)
	}
	return at(s.OutputBlocks, i-promptBlocks)
}

func at(list []uint64, i int) (uint64, bool) {
	if i >= len(list) {
		return 0, false
	}
	return list[i], true
}
