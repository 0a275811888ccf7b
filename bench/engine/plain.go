package engine

import (
	"encoding/json"
	"net/http"
)

// version is what the server calls itself; the shapes are those of vLLM 0.32.
const version = "0.32.0"

// addPlainRoutes adds what is answered without the engine's work.
func (s *Server) addPlainRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/models", s.plain(func(*call) (any, error) {
		return map[string]any{"object": "list", "data": s.modelCards()}, nil
	}))
	mux.HandleFunc("GET /version", s.plain(func(*call) (any, error) { return map[string]string{"version": version}, nil }))
	mux.HandleFunc("GET /load", s.plain(func(*call) (any, error) { return map[string]int{"server_load": s.Live()}, nil }))
	mux.HandleFunc("GET /v1/responses/{id}", s.plain(func(c *call) (any, error) {
		r, ok := s.responses.get(c.r.PathValue("id"))
		if !ok {
			return nil, notFound("response_id", "Response with id '%s' not found.", c.r.PathValue("id"))
		}
		return r.object, nil
	}))
	mux.HandleFunc("POST /reset_prefix_cache", s.plain(func(*call) (any, error) {
		idle := false
		s.Inspect(func(e *Engine) {
			if idle = e.Running() == 0; idle {
				e.Clear()
			}
		})
		return map[string]bool{"success": idle}, nil
	}))
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("GET /ping", s.health)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"detail":"Not Found"}`))
	})
}

func (s *Server) plain(h func(*call) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{s: s, w: w, r: r}
		v, err := h(c)
		if err == nil {
			err = c.answer(v)
		}
		c.end(err)
	}
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	s.faults.mu.Lock()
	unhealthy := s.faults.unhealthy
	s.faults.mu.Unlock()
	if unhealthy || !s.driver.running() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// addHooks adds what only a simulated engine has: tests order faults and look inside.
func (s *Server) addHooks(mux *http.ServeMux) {
	mux.HandleFunc("POST /sim/fail", s.plain(func(c *call) (any, error) {
		var o order
		if err := c.decode(&o); err != nil {
			return nil, err
		}
		f, err := s.faultsOf(o.Of)
		if err != nil {
			return nil, err
		}
		return done, f.set(o)
	}))
	mux.HandleFunc("POST /sim/health", s.plain(func(c *call) (any, error) {
		var o struct {
			Healthy bool `json:"healthy"`
		}
		if err := c.decode(&o); err != nil {
			return nil, err
		}
		s.faults.mu.Lock()
		s.faults.unhealthy = !o.Healthy
		s.faults.mu.Unlock()
		return done, nil
	}))
	mux.HandleFunc("POST /sim/clear", s.plain(func(*call) (any, error) {
		s.Inspect(func(e *Engine) { e.Clear() })
		return done, nil
	}))
	mux.HandleFunc("POST /sim/model", s.plain(func(c *call) (any, error) {
		var o struct{ Add, Remove []string }
		if err := c.decode(&o); err != nil {
			return nil, err
		}
		s.models.remove(o.Remove...)
		s.models.add(o.Add...)
		return map[string]any{"models": s.models.names()}, nil
	}))
	mux.HandleFunc("GET /sim/state", s.plain(func(*call) (any, error) { return s.state(), nil }))
}

var done = json.RawMessage(`{"ok":true}`)

// State is what GET /sim/state answers.
type State struct {
	Live         int     `json:"live"`
	Cancelled    int     `json:"cancelled"`
	Running      int     `json:"running"`
	Waiting      int     `json:"waiting"`
	Queued       int     `json:"queued"` // of those, the ones that a step left behind
	Blocks       int     `json:"blocks"`
	CachedBlocks int     `json:"cached_blocks"`
	KVUsage      float64 `json:"kv_usage"`
	PromptTokens uint64  `json:"prompt_tokens"`
	CachedTokens uint64  `json:"cached_tokens"`
	OutputTokens uint64  `json:"output_tokens"`
	Finished     uint64  `json:"finished"`
	Preemptions  uint64  `json:"preemptions"`
	Batches      uint64  `json:"event_batches"`
	Subscribers  int     `json:"event_subscribers"`
}

func (s *Server) state() (st State) {
	s.Inspect(func(e *Engine) {
		stats := e.Stats()
		st = State{
			Live: len(s.driver.tickets), Cancelled: int(s.driver.cancelled), Running: e.Running(), Waiting: e.Waiting(), Queued: e.Queued(),
			Blocks: e.Blocks(), CachedBlocks: e.CachedBlocks(), KVUsage: e.KVUsage(), PromptTokens: stats.PromptTokens,
			CachedTokens: stats.CachedTokens, OutputTokens: stats.OutputTokens, Finished: stats.Finished, Preemptions: stats.Preemptions,
		}
		if s.announcer != nil {
			st.Batches = s.announcer.batches
		}
	})
	if p := s.publisher.Load(); p != nil {
		st.Subscribers = p.Subscribers()
	}
	return st
}
