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
	Topic    string // prefix of the topics; empty for all
	Bind     bool   // the engine connects to Endpoint
	Rank     int
	Auto     bool // the engine is to be asked (Discover); nothing else is set
}

// ParseSpec reads a value of --events:
//
//	auto                    the engine is asked
//	ENDPOINT[,REPLAY]       tcp://host:port or ipc:///path, which the engine binds
//	bind:ENDPOINT[,REPLAY]  tcp://address:port here, to which the engine connects
//
// The engine always binds its replay socket. ?topic=PREFIX behind the endpoint takes only
// what has a topic that begins so.
func ParseSpec(value string) (Spec, error) {
	if value == "auto" {
		return Spec{Auto: true}, nil
	}
	endpoint, replay, more := strings.Cut(value, ",")
	endpoint, query, asked := strings.Cut(endpoint, "?")
	var s Spec
	s.Endpoint, s.Bind = strings.CutPrefix(endpoint, "bind:")
	s.Replay = replay
	topic, named := strings.CutPrefix(query, "topic=")
	if asked && !named {
		return s, fmt.Errorf("%q: %q behind the endpoint: want ?topic=PREFIX, or nothing", value, "?"+query)
	}
	s.Topic = topic
	return s, s.check(value, more)
}

// forms are the ways to write a spec, for errors.
const forms = "want tcp://HOST:PORT to connect to, bind:tcp://*:PORT where the engine connects, ipc:///PATH, or auto"

func (s *Spec) check(value string, hasReplay bool) error {
	if scheme, _, found := strings.Cut(s.Endpoint, "://"); !found || scheme != "tcp" && scheme != "ipc" {
		return fmt.Errorf("%q can't be used: %s", value, forms)
	}
	var faults []error
	if err := checkEndpoint(s.Endpoint, s.Bind); err != nil {
		faults = append(faults, err)
	}
	if hasReplay {
		if err := s.checkReplay(); err != nil {
			faults = append(faults, fmt.Errorf("replay socket: %w", err))
		}
	}
	return errors.Join(faults...)
}

func (s *Spec) checkReplay() error {
	switch {
	case s.Replay == "":
		return errors.New("is empty: want tcp://HOST:PORT behind the comma, or no comma")
	case strings.HasPrefix(s.Replay, "bind:"):
		return fmt.Errorf("%q: the engine binds it: want it without bind:, with the engine's host", s.Replay)
	case s.Replay == s.Endpoint:
		return fmt.Errorf("%q is the event endpoint: want the engine's replay_endpoint, a socket of its own", s.Replay)
	case isWildcard(s.Replay):
		return fmt.Errorf("%q: nobody can connect to a wildcard: want the engine's host in its place", s.Replay)
	}
	return checkEndpoint(s.Replay, false)
}

// checkEndpoint finds what no socket could use.
func checkEndpoint(endpoint string, bind bool) error {
	if !bind && isWildcard(endpoint) {
		return fmt.Errorf("%q: nobody can connect to a wildcard: want the engine's host in its place, or bind:%s for an engine that connects here", endpoint, endpoint)
	}
	_, _, err := zmtp.Address(endpoint, bind)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "endpoint: "))
	}
	return nil
}

// isWildcard reports whether an endpoint means all addresses of its host.
func isWildcard(endpoint string) bool {
	host, _, err := splitTCP(endpoint)
	return err == nil && host == ""
}
