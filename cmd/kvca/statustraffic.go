package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// traffic is what of /live is shown.
type traffic struct {
	Over         float64  `json:"over_s"` // seconds
	Requests     float64  `json:"requests"`
	Errors       float64  `json:"errors"`
	Refused      float64  `json:"refused"`
	PromptTokens float64  `json:"prompt_tokens"`
	CachedTokens float64  `json:"cached_tokens"`
	OutputTokens float64  `json:"output_tokens"`
	P50          *float64 `json:"ttft_p50_ms"`
	P90          *float64 `json:"ttft_p90_ms"`
	InFlight     int64    `json:"in_flight"`
	Queued       int64    `json:"queued"`
}

// endOfTime asks /live for no single seconds.
const endOfTime = "9000000000"

// fetchTraffic gets the last minute's traffic, nil where the node does not tell it.
func fetchTraffic(ctx context.Context, admin adminAPI) *traffic {
	raw, err := admin.call(ctx, http.MethodGet, "/live?since="+endOfTime, nil)
	if err != nil {
		return nil
	}
	var live struct {
		Minute *traffic `json:"last_minute"`
	}
	if json.Unmarshal(raw, &live) != nil {
		return nil
	}
	return live.Minute
}

// lines are of rates; what there was none of is left out.
func (t *traffic) lines() []string {
	over := cmp.Or(t.Over, 1)
	first := fmt.Sprintf("%.1f requests/s, %.1f errors/s, %.1f refused/s, %d in flight, %d waiting",
		t.Requests/over, t.Errors/over, t.Refused/over, t.InFlight, t.Queued)
	second := fmt.Sprintf("%.0f tokens/s out", t.OutputTokens/over)
	if t.PromptTokens > 0 {
		second += fmt.Sprintf(", %.1f %% of prompt tokens cached", 100*t.CachedTokens/t.PromptTokens)
	}
	if t.P50 != nil && t.P90 != nil {
		second += fmt.Sprintf(", first byte p50 %.0f ms, p90 %.0f ms", *t.P50, *t.P90)
	}
	return []string{first, second}
}
