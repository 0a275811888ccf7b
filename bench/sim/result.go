package sim

// Result is what a run came to. Its JSON form is what `kvca simulate` prints;
// everything in it but WallS depends on the configuration and the trace alone.
type Result struct {
	Policy   string `json:"policy"`
	Precise  bool   `json:"precise"` // it went by what engines published
	Nodes    int    `json:"nodes"`
	Backends int    `json:"backends"`
	Seed     uint64 `json:"seed"`
	Requests int    `json:"requests"`
	// Failed had no whole answer; Retried are attempts on another backend.
	Failed  int `json:"failed"`
	Retried int `json:"retried"`

	// HitRate is the share of the prompt tokens that engines had cached.
	HitRate float64 `json:"hit_rate"`
	// FollowUpHitRate is the same over follow-ups.
	FollowUpHitRate float64 `json:"follow_up_hit_rate"`
	// Kept is the share of follow-ups that went where the request before them
	// went, of those whose trace says which one that was; left out where none does.
	Kept float64 `json:"kept,omitempty"`
	// TTFT is from the arrival at a gateway to the first token at the client.
	TTFT Distribution `json:"ttft_s"`
	// LoadCoV is the coefficient of variation of active requests over the
	// backends, averaged over time.
	LoadCoV float64 `json:"load_cov"`
	// ServedCoV is the coefficient of variation of the requests that the backends
	// have served in all.
	ServedCoV float64 `json:"served_cov"`
	// MaxMeanComputed is what the busiest backend computed of prompts, over the mean.
	MaxMeanComputed float64 `json:"max_mean_computed"`
	// PeerBytesPerS is what one node sent to others in a second.
	PeerBytesPerS float64 `json:"peer_bytes_per_s"`
	// Degraded are decisions without the owner's word.
	Degraded int `json:"degraded"`
	// VirtualS is how long it took in virtual time, WallS in real time.
	VirtualS float64 `json:"virtual_s"`
	WallS    float64 `json:"wall_s"`

	Windows []Window `json:"windows,omitempty"`
	// Stages are the stages of a trace that has several.
	Stages []Stage `json:"stages,omitempty"`
	// TTFTs are all times to the first token in seconds, ascending.
	TTFTs []float64 `json:"-"`
}

// Distribution sums up many times, in seconds.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
}

// Window is what became of the requests that arrived in a part of the run.
type Window struct {
	FromS    float64 `json:"from_s"`
	Requests int     `json:"requests"`
	HitRate  float64 `json:"hit_rate"`
	TTFTMean float64 `json:"ttft_mean_s"`
}

// Stage is what became of one stage's requests, as a load generator counts them.
type Stage struct {
	Requests int     `json:"requests"`
	HitRate  float64 `json:"hit_rate"`
	// TTFT is from the sending to the first token at the client.
	TTFT Distribution `json:"ttft_s"`
	// TokensPerS is of answers, from the first sending to the end of the last answer.
	TokensPerS float64 `json:"tokens_per_s"`
}

func (s *simulation) result() *Result {
	f := &s.figures
	r := &Result{
		Policy: s.cfg.Policy, Precise: s.cfg.Precise, Nodes: s.cfg.Nodes, Backends: s.cfg.Backends, Seed: s.cfg.Seed,
		Requests: f.ended, Failed: f.failed, Retried: f.retried,
		HitRate: f.all.hitRate(), FollowUpHitRate: f.followUps.hitRate(), Kept: ratio(float64(f.kept), float64(f.turns)),
		TTFT: distributionOf(f.ttfts), TTFTs: f.ttfts,
		LoadCoV: ratio(f.spread, float64(f.samples)), ServedCoV: f.servedCoV(), MaxMeanComputed: f.maxMean(),
		VirtualS: s.loop.now.Seconds(),
	}
	for i, w := range f.windows {
		r.Windows = append(r.Windows, Window{
			FromS: float64(i) * s.cfg.Window.Seconds(), Requests: w.requests, HitRate: w.hitRate(),
			TTFTMean: ratio(w.ttft, float64(w.requests)),
		})
	}
	for i := range f.stages {
		p := &f.stages[i]
		r.Stages = append(r.Stages, Stage{
			Requests: p.requests, HitRate: p.hitRate(), TTFT: distributionOf(p.ttfts),
			TokensPerS: ratio(float64(p.output), (p.to - p.from).Seconds()),
		})
	}
	s.gate.report(r)
	return r
}
