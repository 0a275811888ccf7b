package router

import "encoding/json"

// Reason says which branch a decision took.
type Reason string

// The reasons, a closed set: metrics use them as a label.
const (
	// ReasonHit: the chosen backend holds the longest known prefix.
	ReasonHit Reason = "hit"
	// ReasonMiss: no eligible backend holds any of the prompt; load decided.
	ReasonMiss Reason = "miss"
	// ReasonLoadOverride: another eligible backend holds more, and costs more.
	ReasonLoadOverride Reason = "load_override"
	// ReasonNoChain: the prompt has no complete block; load decided.
	ReasonNoChain Reason = "no_chain"
	// ReasonPinned: the request continues a response that this backend keeps.
	ReasonPinned Reason = "pinned"
	// ReasonLastResort: no backend was eligible, so one was tried anyway.
	ReasonLastResort Reason = "last_resort"
	// ReasonPolicy: the policy does not look at the prompt.
	ReasonPolicy Reason = "policy"
)

// Decision is the record of one decision; its JSON form is part of the
// interface that scripts rely on.
type Decision struct {
	Phase         string `json:"phase"`
	Policy        string `json:"policy"`
	Reason        Reason `json:"reason"`
	ChainBlocks   int    `json:"chain_blocks"`
	MatchedBlocks int    `json:"matched_blocks"`
	NovelBlocks   int    `json:"novel_blocks"`
	Backend       string `json:"backend"`
	Owner         string `json:"owner"`
	Degraded      bool   `json:"degraded"`
	// BlockUnit is "cbr" where blocks are segments of the canonical bytes, "tokens"
	// where they are the engine's own, since the precise index answered.
	BlockUnit string `json:"block_unit"`
	// Index is what part the precise index had: "whole" where it was asked for the
	// whole prompt, "beginning" where only that was known in time, "fallback" where
	// it covers the model and was not asked, empty where it does not cover it.
	Index string `json:"index,omitempty"`
	// Fallback says why it was not asked.
	Fallback string `json:"fallback,omitempty"`
	// PredictedTokens is how many of the prompt's tokens the index says the backend
	// holds.
	PredictedTokens int         `json:"predicted_cached_tokens,omitempty"`
	Candidates      []Candidate `json:"candidates"`
}

// The units of blocks, and the parts that the index may have.
const (
	unitCBR    = "cbr"
	unitTokens = "tokens"

	indexWhole     = "whole"
	indexBeginning = "beginning"
	indexFallback  = "fallback"
)

// Candidate is what a decision thought of one backend of the model.
type Candidate struct {
	Backend  string `json:"backend"`
	Eligible bool   `json:"eligible"`
	// Why says why it was not eligible, or what became of it.
	Why           string `json:"why"`
	MatchedBlocks int    `json:"matched_blocks"`
	// Index says where that is known from: "index", "unheard" of a backend that the
	// index covers and has heard nothing of, or "map".
	Index string `json:"index"`
	// Load is the backend's load in bytes of CBR, divided by its speed.
	Load float64 `json:"load"`
	// Cost is the load as the policy counts it plus what the novel blocks cost.
	Cost float64 `json:"cost"`
}

// String is the decision's JSON form, for logs.
func (d *Decision) String() string {
	b, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
