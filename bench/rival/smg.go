package rival

import "time"

// thresholds is SMG's cache_aware in its approximate modes: the shortest queue
// where load is uneven, else whoever has the prompt's beginning if that is enough
// of it, else the shortest queue.
//
// Source: lightseekorg/smg, model_gateway/src/policies/cache_aware.rs and
// crates/kv_index/src/string_tree.rs; defaults of the CLI in
// model_gateway/src/main.rs, of the library in policies/mod.rs.
//
// Of several backends that have the beginning, the tree names the one for which
// the node was made.
//
// Kinder here than there: equal queues are decided by lot (there the first of the
// list wins), and a worker that is gone is forgotten (there its prompts go to the
// first of the list until they are evicted).
type thresholds struct {
	match    float64 // of the prompt, to be exceeded
	absolute int     // uneven where most exceeds least by more than that ...
	relative float64 // ... and is more than so many times least
}

// SMG's tree is bounded by characters of one worker, 4 of them a token, checked
// every so often.
const (
	smgCLIChars     = 67_108_864
	smgLibraryChars = 10_000
)

func smgTree(chars int, every time.Duration) func(*Config) retention {
	return func(c *Config) retention {
		return retention{units: max(1, chars/charsPerToken/c.UnitTokens), every: every, tailFirst: true, forgets: true}
	}
}

func (t thresholds) choose(q *question) int {
	least, most := q.spread()
	if most-least > t.absolute && float64(most) > t.relative*float64(least) {
		return q.leastRequests()
	}
	if float64(q.depth*q.unit) <= t.match*float64(q.request.PromptTokens) {
		return q.leastRequests()
	}
	return q.holder
}
