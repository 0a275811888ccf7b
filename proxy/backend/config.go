package backend

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"

	"kvca/proxy/engine/feed"
	"kvca/state"
)

// Config describes one backend.
type Config struct {
	// ID names the backend in status, logs, metrics and decisions, and decides
	// with the nodes' names who owns it. Default: host:port of the URL. It has 1 to
	// 128 letters, digits, and . _ - : @ [ ] %: see state.CheckBackendID. Two
	// backends can't share one; an ID that changes with each start of the engine
	// makes the fleet forget what the engine's cache holds.
	ID string `json:"id"`

	// URL is the base that request paths are appended to: http, https or h2c
	// (HTTP/2 without TLS), a host, an optional port and base path.
	URL string `json:"url"`

	// Weight is the backend's speed relative to the others. Default 1. Load
	// counts for less on a faster backend: 2 draws about twice the work of 1.
	Weight float64 `json:"weight,omitempty"`

	// Models lists the names that the backend serves. Default: what it answers at
	// /v1/models, asked again every five seconds, so that adapters which come and go
	// are followed. A list given here is believed whatever the engine says.
	Models []string `json:"models,omitempty"`

	// CacheTokens is the size of the engine's KV cache in tokens. Default 0: as
	// its metrics say, else unknown. Too large and evicted blocks are believed
	// in; too small and blocks that are there are computed elsewhere.
	CacheTokens int `json:"cache_tokens,omitempty"`

	// APIKey is sent to the engine as a bearer token in place of whatever the
	// client sent. Default: none, the client's own header passes.
	APIKey string `json:"-"`

	// CAFile holds the PEM certificates that the engine's certificate is checked
	// against. Default: the system's. Only with https.
	CAFile string `json:"ca_file,omitempty"`

	// InsecureSkipVerify accepts any certificate: whoever answers at that address
	// reads every prompt. Only with https.
	InsecureSkipVerify bool `json:"insecure_skip_verify,omitempty"`

	// Events says where the engine publishes its KV cache events: a tcp:// or ipc://
	// endpoint, a comma and its replay endpoint if it has one; bind: before the first
	// where the engine connects to us; or auto to ask it. Default: none, and what it
	// holds is only believed.
	Events string `json:"events,omitempty"`

	// ServerName is the name that the engine's certificate is checked for. Default:
	// the URL's host, which is no name where a backend is found by its address. Only
	// with https.
	ServerName string `json:"server_name,omitempty"`

	// Zone is where the engine runs, as the nodes' zones are called. Default: none,
	// and the backend is as near as any. A name that no node has makes it far from
	// all.
	Zone string `json:"zone,omitempty"`

	// Instance tells one engine from the next under the same ID, where something
	// else than the engine knows: a pod's UID. Default: none.
	Instance string `json:"-"`

	// Draining says that the backend is to get no new requests yet, or any more: who
	// found it says that it is not ready, or about to end.
	Draining bool `json:"-"`

	// Learned says that a peer named the backend, not this node's operator: it
	// goes when no peer names it any more (Pool.Forget).
	Learned bool `json:"-"`
}

const (
	// What is said to be larger than this is not believed: a million gigabytes.
	maxCacheTokens = 1 << 40
	maxModelBytes  = 512
	maxModels      = 1024 // names one backend may serve; what is beyond is ignored
	maxZoneBytes   = 128
)

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	_, _, err := c.resolve()
	return err
}

// Complete fills the defaults, the ID among them, and reports every fault at once.
func (c Config) Complete() (Config, error) {
	c, _, err := c.resolve()
	return c, err
}

// resolve fills the defaults and parses the URL.
func (c Config) resolve() (Config, *url.URL, error) {
	base, urlErr := parseBase(c.URL)
	if urlErr == nil && c.ID == "" {
		c.ID = hostPort(base)
	}
	if c.Weight == 0 {
		c.Weight = 1
	}
	faults := []error{urlErr, c.checkWeight(), c.checkModels(), checkZone(c.Zone)}
	if c.ID != "" || urlErr == nil {
		faults = append(faults, checkID(c.ID))
	}
	if c.CacheTokens < 0 || c.CacheTokens >= maxCacheTokens {
		faults = append(faults, fmt.Errorf("cache_tokens: %d can't be: want the size in tokens, less than %d, or 0 to scrape it", c.CacheTokens, maxCacheTokens))
	}
	if strings.ContainsAny(c.APIKey, "\r\n\x00") {
		faults = append(faults, errors.New("api_key: holds a line break: want one line"))
	}
	if c.Events != "" {
		if _, err := feed.ParseSpec(c.Events); err != nil {
			faults = append(faults, fmt.Errorf("events: %w", err))
		}
	}
	if urlErr == nil {
		faults = append(faults, c.checkTLS(base))
	}
	return c, base, errors.Join(faults...)
}

func (c Config) checkWeight() error {
	if c.Weight >= 0.01 && c.Weight <= 1000 {
		return nil
	}
	return fmt.Errorf("weight: %v is out of range: want 0.01 to 1000, or 0 for 1", c.Weight)
}

func (c Config) checkModels() error {
	if len(c.Models) > maxModels {
		return fmt.Errorf("models: %d names: want at most %d", len(c.Models), maxModels)
	}
	for _, m := range c.Models {
		if m == "" || len(m) > maxModelBytes {
			return fmt.Errorf("models: %.40q is no model name: want 1 to %d bytes", m, maxModelBytes)
		}
	}
	return nil
}

func (c Config) checkTLS(base *url.URL) error {
	if base.Scheme == "https" {
		return nil
	}
	if c.CAFile != "" {
		return fmt.Errorf("ca_file: %q has no effect with %q: want an https URL", c.CAFile, base.Scheme)
	}
	if c.ServerName != "" {
		return fmt.Errorf("server_name: %q has no effect with %q: want an https URL", c.ServerName, base.Scheme)
	}
	if c.InsecureSkipVerify {
		return fmt.Errorf("insecure_skip_verify: true has no effect with %q: want an https URL", base.Scheme)
	}
	return nil
}

func checkZone(zone string) error {
	control := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }
	if len(zone) > maxZoneBytes || strings.IndexFunc(zone, control) >= 0 {
		return fmt.Errorf("zone: %.160q can't be used: want at most %d bytes without control characters", zone, maxZoneBytes)
	}
	return nil
}

func checkID(id string) error {
	if err := state.CheckBackendID(id); err != nil {
		return fmt.Errorf("id: %.160q can't be used: %w", id, err)
	}
	return nil
}

func parseBase(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url: %q can't be read (%w): want like http://host:8000", raw, err)
	case !slices.Contains([]string{"http", "https", "h2c"}, u.Scheme):
		return nil, fmt.Errorf("url: %q has scheme %q: want http, https or h2c", raw, u.Scheme)
	case u.Hostname() == "":
		return nil, fmt.Errorf("url: %q names no host: want like http://host:8000", raw)
	case u.User != nil:
		return nil, fmt.Errorf("url: %q holds credentials: want them in api_key", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("url: %q has a query or fragment: want a host and a path", raw)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[u.Scheme == "https"]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// finite keeps what engines report out of arithmetic that NaN would poison.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
