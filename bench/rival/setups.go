package rival

// setups are llm-d as it was when its figures of the 37 and 73 % capacity cases
// were taken, in September 2025. Weights: llm-d/llm-d-kv-cache,
// benchmarking/37-capacity and 73-capacity, whose reports hold the configurations.
// Rules: kubernetes-sigs/gateway-api-inference-extension of that month,
// pkg/epp/scheduling/framework/plugins/multi/prefix, and
// llm-d/llm-d-inference-scheduler, pkg/plugins/scorer.
var setups = []design{
	{name: "llm-d-37-default", rule: fixed(scorers{2, 1, 1, 0}), keeps: gaieLists, counts: counted, scrape: figuresEvery, reads: gaieReads},
	{name: "llm-d-37-precise", rule: fixed(ranked{scorers{2, 1, 1, 0}}), counts: truth, scrape: figuresEvery},
	{name: "llm-d-73-estimated", rule: fixed(scorers{1, 1, 1, 0}), keeps: gaieLists, counts: counted, scrape: figuresEvery, reads: gaieReads},
	{name: "llm-d-73-precise", rule: fixed(ranked{scorers{3, 2, 2, 0}}), counts: truth, scrape: figuresEvery},
	{name: "llm-d-load", rule: fixed(scorers{0, 1, 1, 0}), scrape: figuresEvery},
}

// The prefix scorer of that month hashed blocks of 64 bytes, where llm-d's of
// today takes 64 tokens, of the first 256 blocks only: of a prompt's 7,200 or
// 9,000 tokens it saw those that a whole group has in common.
const (
	gaieBlockBytes = 64
	gaieReads      = 256 * gaieBlockBytes
)

func gaieLists(c *Config) retention {
	return retention{units: max(1, llmdBlocks*gaieBlockBytes/charsPerToken/c.UnitTokens), forgets: true}
}

// ranked is the precise scorer of that month: matches are stretched between the
// least and the most among the pods that have any of the prompt, 0 to 1, and are 1
// where these are equal. So a little more is worth as much as all.
type ranked struct{ scorers }

func (r ranked) choose(q *question) int {
	least, most := 0, 0
	for _, b := range q.live {
		if m := q.match[b]; m > 0 {
			if most == 0 || m < least {
				least = m
			}
			most = max(most, m)
		}
	}
	return q.highest(r.scorers, nil, func(b int) float64 {
		switch m := q.match[b]; {
		case m == 0:
			return 0
		case least == most:
			return 1
		default:
			return float64(m-least) / float64(most-least)
		}
	})
}
