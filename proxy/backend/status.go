package backend

import "time"

// Status is what there is to say about a backend, for /backends,
// /cluster/status and the metrics.
type Status struct {
	ID          string   `json:"id"`
	URL         string   `json:"url"`
	Learned     bool     `json:"learned"` // from a peer, not given to this node
	Models      []string `json:"models"`
	Health      string   `json:"health"`     // starting, healthy, unhealthy or draining
	Standing    string   `json:"standing"`   // why it is or is not chosen
	Breaker     string   `json:"breaker"`    // closed, open or half-open
	Generation  uint64   `json:"generation"` // restarts that were seen
	Active      int64    `json:"active"`     // requests reserved there, by all nodes
	Running     float64  `json:"running"`    // as the engine says, as are the next
	Waiting     float64  `json:"waiting"`
	KVUsage     float64  `json:"kv_usage"`
	CacheTokens int      `json:"cache_tokens"`
	BlockTokens int      `json:"block_tokens"`
	LoRA        []string `json:"lora_adapters,omitempty"`
	LastError   string   `json:"last_error,omitempty"` // of the probe or connect that took it out
	Zone        string   `json:"zone,omitempty"`
	Weight      float64  `json:"weight"`
	Speed       float64  `json:"speed"` // below the weight during a slow start

	counts countersAt
	scrape bool // the engine exposes its load
}

type countersAt struct {
	staleRetries, probeFailures, scrapeFailures uint64
	opens                                       [len(failureNames)]uint64
}

// Status lists the backends by ID.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	backends := p.sorted()
	p.mu.Unlock()
	list := make([]Status, 0, len(backends))
	for _, b := range backends {
		list = append(list, b.Status())
	}
	return list
}

// Status describes the backend now.
func (b *Backend) Status() Status {
	active := b.pool.slots.Active(b.facts)
	b.mu.Lock()
	defer b.mu.Unlock()
	load := b.engine.load
	s := Status{
		ID: b.config.ID, URL: b.config.URL, Learned: b.config.Learned, Models: b.engine.models,
		Health: b.cond.shown(), Standing: b.cond.standing().String(),
		Breaker: b.cond.breaker.state.String(), Generation: b.engine.generation,
		Active: active, Running: load.Running, Waiting: load.Waiting, KVUsage: load.KVUsage,
		CacheTokens: load.CacheTokens, BlockTokens: load.BlockTokens, LoRA: load.LoRA,
		LastError: b.cond.lastErr, Zone: b.config.Zone, Weight: b.config.Weight,
		Speed:  b.cond.speed(b.config.Weight, b.pool.config.SlowStart, time.Now()),
		counts: b.count.read(), scrape: load.Known,
	}
	if b.config.CacheTokens > 0 {
		s.CacheTokens = b.config.CacheTokens
	}
	return s
}

func (c *counters) read() countersAt {
	at := countersAt{
		staleRetries:   c.staleRetries.Load(),
		probeFailures:  c.probeFailures.Load(),
		scrapeFailures: c.scrapeFailures.Load(),
	}
	for i := range at.opens {
		at.opens[i] = c.opens[i].Load()
	}
	return at
}
