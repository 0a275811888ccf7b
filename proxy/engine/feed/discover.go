package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Do sends a request without body to the engine: its answer's body and status. The
// caller bounds the body.
type Do func(ctx context.Context, method, target string) (body []byte, status int, err error)

// errNoSources is an engine that has no such page.
var errNoSources = errors.New("the engine does not say where its events are: give the endpoint (tcp://host:5557,tcp://host:5657)")

// Discover asks an engine where its events are, one Spec a rank: vLLM at
// /kv_event_sources (0.32 and later), SGLang at /server_info. host is the
// backend's, and stands in for the wildcards that engines bind.
func Discover(ctx context.Context, host string, do Do) ([]Spec, error) {
	specs, err := discoverVLLM(ctx, host, do)
	if !errors.Is(err, errNoSources) {
		return specs, err
	}
	return discoverSGLang(ctx, host, do)
}

// get reads a JSON page; errNoSources where there is none.
func get(ctx context.Context, do Do, target string, into any) error {
	body, status, err := do(ctx, http.MethodGet, target)
	switch {
	case err != nil:
		return fmt.Errorf("ask %s: %w", target, err)
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusForbidden:
		return errNoSources
	case status != http.StatusOK:
		return fmt.Errorf("ask %s: status %d, expected 200", target, status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("ask %s: expected a JSON object: %w", target, err)
	}
	return nil
}

// vllmSource is the kv-events-config of one rank.
type vllmSource struct {
	Enabled   *bool  `json:"enable_kv_cache_events"`
	Publisher string `json:"publisher"`
	Endpoint  string `json:"endpoint"`
	Replay    string `json:"replay_endpoint"`
	Topic     string `json:"topic"`
}

func discoverVLLM(ctx context.Context, host string, do Do) ([]Spec, error) {
	var sources map[string]vllmSource
	if err := get(ctx, do, "/kv_event_sources", &sources); err != nil {
		return nil, err
	}
	if len(sources) == 0 || len(sources) > maxRanks {
		return nil, fmt.Errorf("/kv_event_sources lists %d ranks, expected 1 to %d: start the engine with "+
			`--kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}'`,
			len(sources), maxRanks)
	}
	var specs []Spec
	for name, source := range sources {
		rank, err := strconv.Atoi(name)
		if err != nil || rank < 0 || rank >= maxRanks {
			return nil, fmt.Errorf("/kv_event_sources: rank %.20q, expected a number from 0 to %d", name, maxRanks-1)
		}
		spec, err := source.spec(host, rank)
		if err != nil {
			return nil, fmt.Errorf("/kv_event_sources, rank %d: %w", rank, err)
		}
		specs = append(specs, spec)
	}
	slices.SortFunc(specs, func(a, b Spec) int { return cmp.Compare(a.Rank, b.Rank) })
	return spread(specs)
}

func (v *vllmSource) spec(host string, rank int) (Spec, error) {
	if (v.Enabled != nil && !*v.Enabled) || v.Publisher != "zmq" {
		return Spec{}, fmt.Errorf("enable_kv_cache_events %t, publisher %.20q: expected true and zmq in --kv-events-config",
			v.Enabled == nil || *v.Enabled, v.Publisher)
	}
	if !strings.HasPrefix(v.Endpoint, "ipc://") && !strings.Contains(v.Endpoint, "*") && !strings.Contains(v.Endpoint, "::") {
		return Spec{}, connects(v.Endpoint)
	}
	endpoint, err := reach(v.Endpoint, host)
	if err != nil {
		return Spec{}, fmt.Errorf("endpoint: %w", err)
	}
	spec := Spec{Endpoint: endpoint, Topic: v.Topic, Rank: rank}
	if v.Replay != "" {
		if spec.Replay, err = reach(v.Replay, host); err != nil {
			return Spec{}, fmt.Errorf("replay_endpoint: %w", err)
		}
	}
	return spec, nil
}

// connects is the fault of an engine that will not listen.
func connects(endpoint string) error {
	return fmt.Errorf("the engine connects to %.100s and does not listen, since the endpoint has neither * nor ::: expected "+
		`"endpoint":"tcp://*:5557" in --kv-events-config, or let it connect to this gateway and give bind:tcp://0.0.0.0:PORT here`, endpoint)
}

// spread gives ranks their own ports where the engine listed the same for all.
func spread(specs []Spec) ([]Spec, error) {
	base := specs[0]
	for i := range specs[1:] {
		s := &specs[i+1]
		offset := s.Rank - base.Rank
		for _, e := range []struct{ own, base *string }{{&s.Endpoint, &base.Endpoint}, {&s.Replay, &base.Replay}} {
			if *e.own != *e.base || *e.own == "" {
				continue
			}
			list, err := Endpoints(*e.base, offset+1)
			if err != nil {
				return nil, err
			}
			*e.own = list[offset]
		}
	}
	return specs, nil
}

func discoverSGLang(ctx context.Context, host string, do Do) ([]Spec, error) {
	var info struct {
		Events *struct {
			Publisher string `json:"publisher"`
			Host      string `json:"endpoint_host"`
			Port      int    `json:"endpoint_port_base"`
			Topic     string `json:"topic"`
			Ranks     int    `json:"dp_size"`
		} `json:"kv_events"`
	}
	if err := get(ctx, do, "/server_info", &info); err != nil {
		return nil, err
	}
	e := info.Events
	if e == nil {
		return nil, errNoSources
	}
	if e.Publisher != "zmq" {
		return nil, fmt.Errorf(`/server_info: kv_events publisher %.20q, expected zmq: start the engine with --kv-events-config '{"publisher":"zmq"}'`, e.Publisher)
	}
	bound := joinTCP(strings.Trim(e.Host, "[]"), e.Port)
	if !isWildcard(bound) {
		return nil, fmt.Errorf("/server_info: %w", connects(bound))
	}
	endpoint, err := reach(bound, host)
	if err != nil {
		return nil, fmt.Errorf("/server_info: kv_events: %w", err)
	}
	list, err := Endpoints(endpoint, max(e.Ranks, 1))
	if err != nil {
		return nil, fmt.Errorf("/server_info: kv_events: %w", err)
	}
	specs := make([]Spec, len(list))
	for rank := range list {
		specs[rank] = Spec{Endpoint: list[rank], Topic: e.Topic, Rank: rank}
	}
	return specs, nil
}

// reach is where an address that an engine binds is reached from here: a wildcard
// at the backend's host, and loopback too unless the backend is on this machine.
func reach(bound, host string) (string, error) {
	if strings.HasPrefix(bound, "ipc://") {
		return bound, checkEndpoint(bound, false)
	}
	name, port, err := splitTCP(bound)
	if err != nil {
		return "", err
	}
	if name == "" || (isLoopback(name) && !isLoopback(host)) {
		name = strings.Trim(host, "[]")
	}
	endpoint := joinTCP(name, port)
	return endpoint, checkEndpoint(endpoint, false)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}
