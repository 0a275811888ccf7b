package rival

import "time"

// blockCost is Dynamo's cost in blocks, the lowest of which wins (temperature 0):
//
//	max(blocks to prefill of those at the worker + blocks of the prompt - overlap, 0) + decode blocks
//
// Blocks to prefill count from routing to the first token, less their overlap;
// decode blocks are those that the worker's requests and this one use, each once,
// from routing to the end. Output is not counted (router-track-output-blocks is
// off by default).
//
// Source: ai-dynamo/dynamo, docs/components/router/router-concepts.md and
// lib/kv-router/src/scheduling/selector.rs; prefill_load_scale 1, overlap credit 1.
type blockCost struct{ credit, prefillScale float64 }

// dynamoTTL is how long the approximate indexer believes in a block
// (router-ttl-secs).
const dynamoTTL = 120 * time.Second

func dynamoTree(*Config) retention {
	return retention{ttl: dynamoTTL, tailFirst: true, forgets: true}
}

func (d blockCost) choose(q *question) int {
	prompt := q.request.PromptTokens
	blocks := (prompt + q.unit - 1) / q.unit
	return q.cheapest(func(b int) float64 {
		l := &q.loads[b]
		prefill := float64(l.prefill+prompt)/float64(q.unit) - d.credit*float64(q.match[b])
		return d.prefillScale*max(prefill, 0) + float64(l.blocks+blocks-q.busy[b])
	})
}
