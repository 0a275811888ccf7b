package live

import (
	"strings"
	"time"

	"kvca/proxy/record"
	"kvca/router"
)

// Bounds of what is kept of decisions.
const (
	keptDecisions  = 200
	keptCandidates = 64
)

// Decision is a decision and what became of its request.
type Decision struct {
	// Seq counts decisions since the node's start, from 1.
	Seq uint64 `json:"seq"`
	// Time is when the request came.
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"`
	Trace     string    `json:"trace,omitempty"`
	Endpoint  string    `json:"endpoint"`
	Model     string    `json:"model"`
	Alias     string    `json:"alias,omitempty"`
	Tenant    string    `json:"tenant,omitempty"`
	Status    int       `json:"status"`
	Code      string    `json:"code,omitempty"`
	Attempts  int       `json:"attempts"`
	Streamed  bool      `json:"streamed"`
	BodyBytes int64     `json:"body_bytes"`
	// In milliseconds, 0 for what did not happen.
	TTFT     float64 `json:"ttft_ms"`
	Duration float64 `json:"duration_ms"`
	Gateway  float64 `json:"gateway_ms"`
	Queued   float64 `json:"queued_ms"`
	// As the engine reported, -1 for what it did not.
	PromptTokens int64 `json:"prompt_tokens"`
	CachedTokens int64 `json:"cached_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// Decision has candidates where they were listed.
	Decision router.Decision `json:"decision"`
	// Listed is how many candidates are kept, LeftOut how many there were beyond.
	Listed  int `json:"candidates_listed"`
	LeftOut int `json:"candidates_left_out"`
}

// decisions is the ring of the last ones.
type decisions struct {
	newest uint64
	ring   [keptDecisions]Decision
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// add copies what is kept of r, whose decision is not nil.
func (d *decisions) add(r *record.Record) {
	d.newest++
	k := &d.ring[d.newest%keptDecisions]
	room := k.Decision.Candidates[:0]
	*k = Decision{
		Seq: d.newest, Time: r.Began, Trace: r.Trace, Endpoint: r.Endpoint, Model: r.Model, Alias: r.Alias, Tenant: r.Tenant,
		RequestID: strings.Clone(r.ID), // it may be a part of the request's header
		Status:    r.Status, Code: r.Code, Attempts: r.Attempts, Streamed: r.Streamed, BodyBytes: r.BodyBytes,
		TTFT: milliseconds(r.FirstByte), Duration: milliseconds(r.Duration), Gateway: milliseconds(r.Gateway), Queued: milliseconds(r.Queued),
		PromptTokens: r.PromptTokens, CachedTokens: r.CachedTokens, OutputTokens: r.OutputTokens,
		Decision: *r.Decision,
	}
	k.Decision.Candidates = keepCandidates(room, r.Decision)
	k.Listed = len(k.Decision.Candidates)
	k.LeftOut = len(r.Decision.Candidates) - k.Listed
}

// keepCandidates copies the first candidates into room, the chosen one among them
// wherever it stood.
func keepCandidates(room []router.Candidate, d *router.Decision) []router.Candidate {
	all := d.Candidates
	room = append(room, all[:min(len(all), keptCandidates)]...)
	for i := len(room); i < len(all); i++ {
		if all[i].Backend == d.Backend {
			room[keptCandidates-1] = all[i]
		}
	}
	return room
}

// get copies a decision into k, and is false where it is not kept. Without detail it
// comes without candidates; with it, they are copied, too.
func (d *decisions) get(seq uint64, detail bool, k *Decision) bool {
	if seq == 0 || seq > d.newest || seq+keptDecisions <= d.newest {
		return false
	}
	*k = d.ring[seq%keptDecisions]
	kept := k.Decision.Candidates
	k.Decision.Candidates = []router.Candidate{}
	if detail {
		k.Decision.Candidates = append(k.Decision.Candidates, kept...)
	}
	return true
}
