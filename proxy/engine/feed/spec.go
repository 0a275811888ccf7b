package feed

import (
	"errors"
	"fmt"
	"strings"
)

// Spec says where one rank's events are.
type Spec struct {
	Endpoint string
	Replay   string // empty for none
	Topic    string
	Bind     bool // the engine connects to Endpoint
	Rank     int
	Auto     bool // the engine is to be asked (Discover); nothing else is set
}

// ParseSpec reads a value of --events:
//
//	auto                    the engine is asked
//	ENDPOINT[,REPLAY]       tcp://host:port or ipc:///path, which the engine binds
//	bind:ENDPOINT[,REPLAY]  tcp://address:port here, to which the engine connects
//
// The engine always binds its replay socket.
func ParseSpec(value string) (Spec, error) {
	if value == "auto" {
		return Spec{Auto: true}, nil
	}
	endpoint, replay, more := strings.Cut(value, ",")
	var s Spec
	s.Endpoint, s.Bind = strings.CutPrefix(endpoint, "bind:")
	s.Replay = replay
	return s, s.check(value, more)
}

func (s *Spec) check(value string, hasReplay bool) error {
	var faults []error
	fault := func(what string, err error) {
		faults = append(faults, fmt.Errorf("events %q: %s: %w", value, what, err))
	}
	if err := checkEndpoint(s.Endpoint); err != nil {
		fault("event endpoint", err)
	} else if !s.Bind && isWildcard(s.Endpoint) {
		fault("event endpoint", errors.New("nobody can connect to a wildcard: expected the engine's host, or bind: for an engine that connects here"))
	}
	if !hasReplay {
		return errors.Join(faults...)
	}
	switch err := checkEndpoint(s.Replay); {
	case strings.HasPrefix(s.Replay, "bind:"):
		fault("replay endpoint", errors.New("the engine binds it: expected an address to connect to, without bind:"))
	case err != nil:
		fault("replay endpoint", err)
	case isWildcard(s.Replay):
		fault("replay endpoint", errors.New("nobody can connect to a wildcard: expected the engine's host"))
	case s.Replay == s.Endpoint:
		fault("replay endpoint", errors.New("is the event endpoint: expected the engine's replay_endpoint, a socket of its own"))
	}
	return errors.Join(faults...)
}

// isWildcard reports whether an endpoint means all addresses of its host.
func isWildcard(endpoint string) bool {
	host, _, err := splitTCP(endpoint)
	return err == nil && (host == "*" || host == "0.0.0.0" || host == "::")
}
