package engine

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"kvca/bench/publish"
)

// What vLLM's server says of its queues; the simulated ones have bounds of their own.
const (
	highWater = 100_000
	maxQueue  = 100_000
	ringSize  = 10_000
)

// newAnnouncer has the engine's changes told, if the server is to announce them. A form that is none is reported by OpenEvents.
func newAnnouncer(cfg ServerConfig, e *Engine) *announcer {
	if !cfg.Events.on() {
		return nil
	}
	a := &announcer{rank: cfg.Events.Rank, unit: cfg.Profile.BlockTokens}
	a.form, _ = cfg.Events.form()
	e.Watch(a.tell)
	if !cfg.Events.OneCopy {
		e.KeepCopies()
	}
	return a
}

// OpenEvents opens the sockets of ServerConfig.Events; Close closes them. Serve does it, unless it has been done before, which one
// does who wants to know the addresses first. Whatever the cache changes before is never heard of. Without Events it does nothing.
func (s *Server) OpenEvents() error {
	cfg := s.cfg.Events
	if s.announcer == nil || s.publisher.Load() != nil {
		return nil
	}
	if _, err := cfg.form(); err != nil {
		return err
	}
	p, err := publish.New(publish.Config{
		Endpoint: cfg.Endpoint, Bind: cfg.Bind, Replay: cfg.Replay, Topic: cfg.Topic, Buffer: cfg.Buffer, OldReplay: cfg.OldReplay,
	})
	if err != nil {
		return fmt.Errorf("open event sockets: %w", err)
	}
	s.publisher.Store(p)
	s.driver.inspect(func(*Engine) { s.announcer.send = p.Publish })
	return nil
}

// closeEvents ends the announcements. The driver has stopped; a handler may still bring the engine up to date.
func (s *Server) closeEvents() {
	p := s.publisher.Load()
	if p == nil {
		return
	}
	s.driver.inspect(func(*Engine) { s.announcer.send = nil })
	_ = p.Close() // its listeners were open
}

// EventSockets returns the addresses behind Events' endpoints, ports filled in; empty before OpenEvents, and where there is none.
func (s *Server) EventSockets() (endpoint, replay string) {
	p := s.publisher.Load()
	if p == nil {
		return "", ""
	}
	return p.Endpoint(), p.ReplayEndpoint()
}

// eventSource is one rank's entry of GET /kv_event_sources.
type eventSource struct {
	Enabled   bool    `json:"enable_kv_cache_events"`
	Publisher string  `json:"publisher"`
	Endpoint  string  `json:"endpoint"`
	Replay    *string `json:"replay_endpoint"`
	Buffer    int     `json:"buffer_steps"`
	HWM       int     `json:"hwm"`
	MaxQueue  int     `json:"max_queue_size"`
	Topic     string  `json:"topic"`
}

// eventSources lists where events can be had, by rank.
func (s *Server) eventSources() map[string]eventSource {
	list := map[string]eventSource{}
	endpoint, replay := s.EventSockets()
	if endpoint == "" {
		return list
	}
	cfg := s.cfg.Events
	src := eventSource{
		Enabled: true, Publisher: "zmq", Endpoint: cfg.asConfigured(endpoint), Buffer: cfg.Buffer, HWM: highWater, MaxQueue: maxQueue,
		Topic: cfg.Topic,
	}
	if src.Buffer <= 0 {
		src.Buffer = ringSize
	}
	if replay != "" {
		src.Replay = &replay
	}
	list[strconv.Itoa(cfg.Rank)] = src
	return list
}

// asConfigured writes a bound address as vLLM's configuration would have to: with a * for the host, without which it would connect.
func (e Events) asConfigured(address string) string {
	host, ok := strings.CutPrefix(address, "tcp://")
	if i := strings.LastIndexByte(host, ':'); ok && e.bound() && i >= 0 {
		return "tcp://*" + host[i:]
	}
	return address
}

func (e Events) bound() bool {
	return e.Bind || strings.Contains(e.Endpoint, "*") || strings.Contains(e.Endpoint, "::") || strings.HasPrefix(e.Endpoint, "ipc://")
}

// sglangEvents is what SGLang's GET /server_info says of events.
type sglangEvents struct {
	Publisher string `json:"publisher"`
	Host      string `json:"endpoint_host"`
	Port      int    `json:"endpoint_port_base"`
	Topic     string `json:"topic"`
	BlockSize int    `json:"block_size"`
	Ranks     int    `json:"dp_size"`
}

func (s *Server) serverInfo() map[string]sglangEvents {
	endpoint, _ := s.EventSockets()
	if endpoint == "" {
		return map[string]sglangEvents{}
	}
	address := strings.TrimPrefix(s.cfg.Events.asConfigured(endpoint), "tcp://")
	colon := strings.LastIndexByte(address, ':')
	port, _ := strconv.Atoi(address[colon+1:]) // 0 where it is no TCP address
	return map[string]sglangEvents{
		"kv_events": {"zmq", address[:max(colon, 0)], port, s.cfg.Events.Topic, s.cfg.Profile.BlockTokens, 1},
	}
}

// addEventRoutes adds what tells of the events, and what disturbs them. Each kind of engine tells by a page of its own.
func (s *Server) addEventRoutes(mux *http.ServeMux) {
	switch {
	case s.cfg.Lacks.EventSources:
	case s.cfg.Events.Form == "sglang":
		mux.HandleFunc("GET /server_info", s.plain(func(*call) (any, error) { return s.serverInfo(), nil }))
	default:
		mux.HandleFunc("GET /kv_event_sources", s.plain(func(*call) (any, error) { return s.eventSources(), nil }))
	}
	mux.HandleFunc("POST /sim/events", s.plain((*call).disturbEvents))
}
