package feed

import (
	"errors"
	"fmt"
	"strings"

	"kvca/proxy/engine/zmtp"
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
	if err := checkEndpoint(s.Endpoint, s.Bind); err != nil {
		fault("event endpoint", err)
	}
	if hasReplay {
		if err := s.checkReplay(); err != nil {
			fault("replay endpoint", err)
		}
	}
	return errors.Join(faults...)
}

func (s *Spec) checkReplay() error {
	switch {
	case strings.HasPrefix(s.Replay, "bind:"):
		return errors.New("the engine binds it: expected, without bind:, an address to connect to")
	case s.Replay == s.Endpoint:
		return errors.New("is the event endpoint: expected the engine's replay_endpoint, a socket of its own")
	}
	return checkEndpoint(s.Replay, false)
}

// checkEndpoint finds what no socket could use.
func checkEndpoint(endpoint string, bind bool) error {
	if _, _, err := zmtp.Address(endpoint, bind); err != nil {
		return err
	}
	if !bind && isWildcard(endpoint) {
		return fmt.Errorf("%s: nobody can connect to a wildcard: expected the engine's host, or bind: for an engine that connects here", endpoint)
	}
	return nil
}

// isWildcard reports whether an endpoint means all addresses of its host.
func isWildcard(endpoint string) bool {
	host, _, err := splitTCP(endpoint)
	return err == nil && host == ""
}
