package trace

import (
	"cmp"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"kvca/proxy/record"
	"kvca/router"
)

// operations are the GenAI conventions' names of what endpoints do. What is not
// listed, such as /tokenize, is no operation of theirs.
var operations = map[string]string{
	"/v1/chat/completions": "chat",
	"/v1/responses":        "chat",
	"/v1/messages":         "chat",
	"/v1/completions":      "text_completion",
	"/v1/embeddings":       "embeddings",
}

func name(r *record.Record) string {
	operation := operations[r.Endpoint]
	switch {
	case operation == "":
		return r.Method + " " + r.Endpoint
	case r.Model == "":
		return operation
	default:
		return operation + " " + r.Model
	}
}

func (s *Span) attributes(r *record.Record) []attribute.KeyValue {
	a := make(attributes, 0, 40)
	a.word("http.request.method", r.Method)
	a.word("http.route", r.Endpoint)
	a.number("http.response.status_code", int64(r.Status))
	a.word("kvca.request_id", r.ID)
	a.word("kvca.tenant", r.Tenant)
	a.number("kvca.attempts", int64(r.Attempts))
	a.seconds("kvca.queued", r.Queued)
	a.seconds("kvca.gateway", r.Gateway)
	a.genAI(r)
	if r.Decision != nil {
		a.decision(r.Decision)
		a = appendAddress(a, s.t.address(r.Decision.Backend))
	}
	return a
}

// attributes grow by what is known.
type attributes []attribute.KeyValue

// genAI adds what the GenAI semantic conventions name. The provider is the gateway:
// what engine is behind it the conventions have no word for.
func (a *attributes) genAI(r *record.Record) {
	operation := operations[r.Endpoint]
	if operation == "" {
		return
	}
	a.word("gen_ai.operation.name", operation)
	a.word("gen_ai.provider.name", "kvca")
	a.word("gen_ai.request.model", cmp.Or(r.Alias, r.Model))
	if r.Status/100 == 2 {
		a.word("gen_ai.response.model", r.Model)
	}
	if r.Streamed {
		*a = append(*a, attribute.Bool("gen_ai.request.stream", true))
		a.seconds("gen_ai.response.time_to_first_chunk", r.FirstByte)
	}
	a.known("gen_ai.usage.input_tokens", r.PromptTokens)
	a.known("gen_ai.usage.output_tokens", r.OutputTokens)
	a.known("gen_ai.usage.cache_read.input_tokens", r.CachedTokens)
}

func (a *attributes) decision(d *router.Decision) {
	a.word("kvca.phase", d.Phase)
	a.word("kvca.policy", d.Policy)
	a.word("kvca.reason", string(d.Reason))
	a.number("kvca.chain_blocks", int64(d.ChainBlocks))
	a.number("kvca.matched_blocks", int64(d.MatchedBlocks))
	a.number("kvca.novel_blocks", int64(d.NovelBlocks))
	a.word("kvca.block_unit", d.BlockUnit)
	a.word("kvca.backend", d.Backend)
	a.word("kvca.owner", d.Owner)
	*a = append(*a, attribute.Bool("kvca.degraded", d.Degraded))
	a.word("kvca.index", d.Index)
	a.word("kvca.fallback", d.Fallback)
	if d.PredictedTokens > 0 {
		a.number("kvca.predicted_cached_tokens", int64(d.PredictedTokens))
	}
}

func (a *attributes) word(key, v string) {
	if v != "" {
		*a = append(*a, attribute.String(key, v))
	}
}

func (a *attributes) number(key string, v int64) { *a = append(*a, attribute.Int64(key, v)) }

func (a *attributes) known(key string, v int64) {
	if v >= 0 {
		a.number(key, v)
	}
}

func (a *attributes) seconds(key string, d time.Duration) {
	if d > 0 {
		*a = append(*a, attribute.Float64(key, d.Seconds()))
	}
}
