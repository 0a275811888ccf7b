package page

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/proxy/live"
	"kvca/proxy/record"
	"kvca/router"
)

// fakeNode answers as a node of a cluster does, with traffic of its own.
type fakeNode struct {
	*httptest.Server
	nodes, backends int
	stepped         bool // a second passes with each question for /live, not by the clock
	token           string

	mu      sync.Mutex
	down    bool
	missing string // a file of the page that does not load
	ill     bool   // some backends and a node are
	asked   int
	drained map[string]bool
	random  *rand.Rand
	began   time.Time
	clock   time.Time
	live    *live.Live
	active  []int
}

func newFake(t testing.TB, nodes, backends int, options ...func(*fakeNode)) *fakeNode {
	f := &fakeNode{
		nodes: nodes, backends: backends, drained: map[string]bool{},
		random: rand.New(rand.NewPCG(1, 2)), began: time.Now(), active: make([]int, backends),
	}
	for _, o := range options {
		o(f)
	}
	f.live = live.New(live.Config{
		Now:      func() time.Time { return f.clock },
		InFlight: func() int64 { return int64(20 + 8*f.wave(90) + f.random.Float64()*4) },
		Queued:   func() int64 { return int64(max(0, 6*f.wave(200)-2)) },
	})
	f.clock = f.began.Add(-10 * time.Minute)
	f.play(f.began)
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Server.Close)
	return f
}

// wave is between -1 and 1, with the period in seconds.
func (f *fakeNode) wave(period float64) float64 {
	x := float64(f.clock.Unix()) / period
	return 4*abs(x-float64(int64(x))-.5) - 1
}

func abs(x float64) float64 { return max(x, -x) }

// play lets traffic go on until the fake's time is at.
func (f *fakeNode) play(at time.Time) {
	for ; f.clock.Before(at); f.clock = f.clock.Add(time.Second) {
		f.beat()
		if f.backends == 0 {
			continue
		}
		for range int(38 + 14*f.wave(140) + f.random.Float64()*9) {
			f.live.Ended(f.request())
		}
		for i := range f.active {
			f.active[i] = min(max(f.active[i]+f.random.IntN(5)-2, 0), 12)
		}
	}
}

// beat is what live.Run does.
func (f *fakeNode) beat() {
	w := httptest.NewRecorder()
	f.live.ServeLive(w, httptest.NewRequest(http.MethodGet, "/live?since=9000000000", nil))
}

var fakeReasons = []router.Reason{
	router.ReasonHit, router.ReasonHit, router.ReasonHit, router.ReasonHit, router.ReasonHit, router.ReasonHit, router.ReasonHit, router.ReasonHit,
	router.ReasonMiss, router.ReasonMiss, router.ReasonLoadOverride, router.ReasonNoChain, router.ReasonPinned,
}

func (f *fakeNode) request() *record.Record {
	n := f.random.Uint64()
	chosen := backendName(f.random.IntN(f.backends))
	blocks := 4 + f.random.IntN(60)
	d := &router.Decision{
		Phase: "follow-up", Policy: "cost", Reason: fakeReasons[f.random.IntN(len(fakeReasons))], ChainBlocks: blocks,
		Backend: chosen, Owner: nodeName(f.random.IntN(f.nodes)), BlockUnit: "cbr",
	}
	switch d.Reason {
	case router.ReasonMiss:
	case router.ReasonNoChain:
		d.ChainBlocks = 0
	default:
		d.MatchedBlocks = blocks - f.random.IntN(3)
	}
	d.NovelBlocks = d.ChainBlocks - d.MatchedBlocks
	if n%4 == 0 && time.Since(f.clock) < 20*time.Second {
		d.Candidates = f.candidates(d, min(f.backends, 40))
	}
	r := &record.Record{
		ID: fmt.Sprintf("%016x%016x", n, n*31), Endpoint: "/v1/chat/completions", Model: "llama-3.1-8b-instruct", Tenant: "research",
		Began: f.clock, Status: 200, Attempts: 1, BodyBytes: int64(512 * d.ChainBlocks), Streamed: true,
		FirstByte: time.Duration(40+200*f.random.ExpFloat64()*float64(d.NovelBlocks+2)/20) * time.Millisecond, Gateway: 180 * time.Microsecond,
		PromptTokens: int64(128*d.ChainBlocks + 40), CachedTokens: int64(128 * d.MatchedBlocks), OutputTokens: 120,
		Decision: d,
	}
	r.Duration = r.FirstByte + 2*time.Second
	if f.ill && n%97 == 0 {
		r.Status, r.Code, r.FirstByte = 502, "backend_failed", 0
	}
	if n%211 == 0 {
		r.Status = 499
	}
	return r
}

func (f *fakeNode) candidates(d *router.Decision, n int) []router.Candidate {
	list := []router.Candidate{{Backend: d.Backend, Eligible: true, Why: "chosen", MatchedBlocks: d.MatchedBlocks, Index: "map", Load: 21_000, Cost: 24_000}}
	for i := 0; len(list) < n; i++ {
		if name := backendName(i); name != d.Backend {
			c := router.Candidate{Backend: name, Eligible: i%9 != 5, Why: "costs more", MatchedBlocks: d.MatchedBlocks * (i % 3) / 3, Index: "map", Load: float64(9000 * (i % 7))}
			c.Cost = c.Load + float64(512*(d.ChainBlocks-c.MatchedBlocks)) + 25_000
			if !c.Eligible {
				c.Why, c.Cost = "unhealthy", 0
			}
			list = append(list, c)
		}
	}
	return list
}

func nodeName(i int) string    { return fmt.Sprintf("gw-%d", i+1) }
func backendName(i int) string { return fmt.Sprintf("gpu-%03d", i+1) }

func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.missing != "" && r.URL.Path == f.missing {
		panic(http.ErrAbortHandler)
	}
	if r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/page/") {
		Handler().ServeHTTP(w, r)
		return
	}
	f.asked++
	if f.down {
		panic(http.ErrAbortHandler)
	}
	if f.token != "" && r.Header.Get("Authorization") != "Bearer "+f.token {
		fakeError(w, http.StatusUnauthorized, "unauthorized", "The admin API asks for a token.")
		return
	}
	switch {
	case !f.stepped:
		f.play(time.Now())
	case r.URL.Path == "/live":
		f.play(f.clock.Add(time.Second))
	}
	f.answer(w, r)
}

func (f *fakeNode) answer(w http.ResponseWriter, r *http.Request) {
	id, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/backends/"), "/")
	switch {
	case r.URL.Path == "/live":
		f.live.ServeLive(w, r)
	case r.URL.Path == "/decisions":
		f.live.ServeDecisions(w, r)
	case r.URL.Path == "/cluster/status":
		json.NewEncoder(w).Encode(f.status())
	case r.URL.Path == "/explain" && r.Method == http.MethodPost:
		f.explain(w, r)
	case r.Method == http.MethodPost && (verb == "drain" || verb == "undrain"):
		f.drained[id] = verb == "drain"
		w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(w, r)
	}
}

func fakeError(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": code, "type": "invalid_request_error", "param": nil}})
}

func (f *fakeNode) explain(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	if !json.Valid(b) {
		fakeError(w, http.StatusBadRequest, "invalid_json", "The body is not JSON: it ends early.")
		return
	}
	d := f.request().Decision
	d.Reason, d.ChainBlocks, d.MatchedBlocks, d.NovelBlocks = router.ReasonHit, 14, 12, 2
	d.Candidates = f.candidates(d, f.backends)
	json.NewEncoder(w).Encode(d)
}

// object is a JSON object.
type object = map[string]any

func (f *fakeNode) status() object {
	s := object{
		"node": "gw-1", "cluster": "production", "version": "v0.7.0", "ready": true, "in_flight": 23,
		"members": f.members(), "backends": f.backendList(),
		"block_map":    object{"blocks": 412_033, "locations": 530_112, "tentative": 31, "bytes": 58_720_256, "max_bytes": 100_663_296, "expired": 91_022, "evicted": 0},
		"reservations": object{"held": 23, "granted": 90_112, "refused": 1201, "degraded": 2},
		"divergence":   object{"gw-2": 0, "gw-3": 12},
		"index":        object{"status": "disabled", "sources": []any{}, "tokenizers": []any{}, "lost": []any{}, "distrusted": []any{}},
	}
	if f.backends > 0 {
		s["limits"] = []object{
			{"tenant": "research", "owner": "gw-2", "limit": object{"requests_per_second": 20, "tokens_per_second": 200_000, "concurrent": 64}, "here": object{"requests_per_second": 4.2, "tokens_per_second": 31_000, "concurrent": 12}},
			{"tenant": "product", "model": "llama", "owner": "gw-1", "limit": object{"concurrent": 8}, "here": object{"concurrent": 2}, "cluster": object{"concurrent": 6}},
		}
		s["queue"] = object{"waiting": 2}
		s["index"] = f.index()
	}
	return s
}

func (f *fakeNode) index() object {
	sources := []object{}
	for i := range min(f.backends, 12) {
		s := object{"backend": backendName(i), "rank": 0, "by": "events", "state": "live", "blocks": 18_211 + i, "gaps": 0, "problem": ""}
		if f.ill && i == 2 {
			s["state"], s["problem"] = "degraded", "no events for 12 s"
		}
		sources = append(sources, s)
	}
	return object{
		"status": "live", "entries": 90_112, "blocks": 190_022, "bytes": 31_457_280, "max_bytes": 268_435_456, "dropped": 0, "sources": sources,
		"tokenizers": []object{{"model": "llama-3.1-8b-instruct", "way": "render", "problem": "", "ways": object{"render": "in use"}}},
		"lost":       []string{}, "distrusted": []string{},
	}
}

func (f *fakeNode) members() []object {
	list := []object{}
	for i := range f.nodes {
		m := object{
			"name": nodeName(i), "address": fmt.Sprintf("10.0.0.%d:7946", i+1), "state": "alive", "ready": true, "boot": "b", "lag_ms": .4 + float64(i)/10,
			"dirty": false, "link": "up", "rtt_ms": .3 + float64(i)/20, "owned": f.backends / f.nodes, "held": 3, "client": "", "admin": "", "differs": "",
		}
		if i == 0 {
			m["link"] = "self"
		}
		if f.ill && i == 2 {
			m["state"], m["link"], m["ready"] = "suspect", "down", false
		}
		list = append(list, m)
	}
	return list
}

func (f *fakeNode) backendList() []object {
	list := []object{}
	for i := range f.backends {
		b := object{
			"id": backendName(i), "url": fmt.Sprintf("http://10.1.%d.%d:8000", i/250, i%250+1), "learned": false, "models": []string{"llama-3.1-8b-instruct"},
			"health": "healthy", "standing": "available", "breaker": "closed", "generation": i % 3, "active": f.active[i], "running": f.active[i] * 3 / 4,
			"waiting": f.active[i] / 4, "kv_usage": float64(f.active[i]*7+i%11) / 100, "cache_tokens": 240_000, "block_tokens": 16, "weight": 1, "speed": 1,
			"owner": nodeName(i * 7 % f.nodes), "novel_blocks": f.active[i] * 11, "peers": object{"gw-2": "healthy"},
		}
		switch {
		case f.drained[backendName(i)]:
			b["health"], b["standing"] = "draining", "draining"
		case f.ill && i%41 == 6:
			b["health"], b["standing"], b["last_error"] = "unhealthy", "unhealthy", "dial tcp 10.1.0.7:8000: connection refused"
		case f.ill && i%67 == 9:
			b["health"] = "starting"
		}
		list = append(list, b)
	}
	return list
}
