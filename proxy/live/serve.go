package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// Second is one second's traffic.
type Second struct {
	// Second is when, since 1970.
	Second int64 `json:"second"`
	Traffic
}

// Traffic is what ended within a time, and the most that was under way.
type Traffic struct {
	Requests uint32 `json:"requests"`
	// Errors are answers of 500 and above, Refused those of 400 to 499, clients that
	// left first among them.
	Errors  uint32 `json:"errors"`
	Refused uint32 `json:"refused"`
	// Degraded are decisions that were made without the backend's owner.
	Degraded uint32 `json:"degraded"`
	// PromptTokens and CachedTokens are of the requests whose engine reports what
	// was cached.
	PromptTokens int64 `json:"prompt_tokens"`
	CachedTokens int64 `json:"cached_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// P50 and P90 are the time to the first byte, within 7 %; null where there was
	// none.
	P50      *float64 `json:"ttft_p50_ms"`
	P90      *float64 `json:"ttft_p90_ms"`
	InFlight int64    `json:"in_flight"`
	Queued   int64    `json:"queued"`
	// Reasons counts decisions by their reason; those that did not occur are left
	// out.
	Reasons map[string]uint32 `json:"reasons"`
}

func (s *second) traffic() Traffic {
	t := Traffic{
		Requests: s.requests, Errors: s.errors, Refused: s.refused, Degraded: s.degraded,
		PromptTokens: s.prompt, CachedTokens: s.cached, OutputTokens: s.output,
		InFlight: s.inFlight, Queued: s.queued, Reasons: map[string]uint32{},
	}
	if s.firstByte.count > 0 {
		p50, p90 := milliseconds(s.firstByte.quantile(.5)), milliseconds(s.firstByte.quantile(.9))
		t.P50, t.P90 = &p50, &p90
	}
	for i, n := range s.reasons {
		if n > 0 {
			t.Reasons[string(reasons[i])] = n
		}
	}
	return t
}

// Minute is the traffic of the last whole seconds, at most 60 of them.
type Minute struct {
	// Over is how many seconds it covers.
	Over int `json:"over_s"`
	Traffic
}

// answer is what /live answers.
type answer struct {
	// Now is the second that is under way.
	Now    int64    `json:"now"`
	Window int      `json:"window_s"`
	Minute Minute   `json:"last_minute"`
	List   []Second `json:"seconds"`
}

// ServeLive answers the seconds from ?since= on, the one under way included, and the
// last minute as a whole. Seconds of which nothing is known are left out.
func (l *Live) ServeLive(w http.ResponseWriter, r *http.Request) {
	since, err := number(r.URL.Query(), "since", 0)
	if err != nil {
		refuse(w, "invalid_since", "since", err)
		return
	}
	now := l.sample()
	a := answer{Now: now, Window: window, Minute: l.minute(now), List: []Second{}}
	var b second
	from := now - window + 1
	if since > uint64(max(from, 0)) {
		from = int64(min(since, uint64(now)+1))
	}
	for at := from; at <= now; at++ {
		if l.second(at, &b) {
			a.List = append(a.List, Second{at, b.traffic()})
		}
	}
	writeJSON(w, a)
}

// minute sums up the 60 seconds before now.
func (l *Live) minute(now int64) Minute {
	var sum, b second
	covered := 0
	for at := now - 60; at < now; at++ {
		if !l.second(at, &b) {
			continue
		}
		if covered == 0 {
			covered = int(now - at)
		}
		sum.merge(&b)
	}
	return Minute{covered, sum.traffic()}
}

// Pages of /decisions.
const (
	decisionsPage    = 50
	maxDecisionsPage = keptDecisions
)

// ServeDecisions answers the newest decisions after ?after=, at most ?limit= of them,
// the oldest first; with ?seq= that one alone. Candidates come with ?seq= or
// ?details=true.
func (l *Live) ServeDecisions(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	after, err := number(q, "after", 0)
	if err != nil {
		refuse(w, "invalid_after", "after", err)
		return
	}
	limit, err := number(q, "limit", decisionsPage)
	if err == nil && (limit < 1 || limit > maxDecisionsPage) {
		err = fmt.Errorf("expected 1 to %d, got %d", maxDecisionsPage, limit)
	}
	if err != nil {
		refuse(w, "invalid_limit", "limit", err)
		return
	}
	seq, err := number(q, "seq", 0)
	if err != nil {
		refuse(w, "invalid_seq", "seq", err)
		return
	}
	l.asked.Store(l.cfg.Now().Unix())
	newest, detail := l.newestDecision(), q.Get("details") == "true"
	first, last := max(after+1, newest+1-min(limit, newest)), newest
	if seq > 0 {
		first, last, detail = seq, min(seq, newest), true
	}
	list := []Decision{}
	var k Decision
	for s := first; s <= last; s++ {
		if l.decision(s, detail, &k) {
			list = append(list, k)
		}
	}
	writeJSON(w, map[string]any{"newest": newest, "kept": keptDecisions, "decisions": list})
}

func number(q url.Values, name string, absent uint64) (uint64, error) {
	text := q.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("expected a whole number, got %q", text[:min(len(text), 40)])
	}
	return n, nil
}

// refuse answers a fault in the query, in the admin API's shape.
func refuse(w http.ResponseWriter, code, param string, err error) {
	writeStatus(w, http.StatusBadRequest, map[string]any{"error": map[string]string{
		"message": "The parameter " + param + " can't be: " + err.Error() + ".",
		"type":    "invalid_request_error", "param": param, "code": code,
	}})
}

func writeJSON(w http.ResponseWriter, v any) { writeStatus(w, http.StatusOK, v) }

func writeStatus(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "can't be encoded: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(b) // a reader that is gone loses nothing
}
