package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kvca/cluster/wire"
)

// Credentials are the agents that a node lets in. The zero value has none.
type Credentials struct {
	byName map[string]credential
}

type credential struct {
	token    []byte
	backends map[string]bool
}

// Bounds of a credentials file.
const (
	minToken     = 16
	maxToken     = 1024
	maxAgentName = 255
	maxLine      = 64 << 10
	maxAgents    = 4096
)

// ReadCredentials reads a file of lines NAME TOKEN BACKEND[,BACKEND...]; empty ones
// and those that begin with # count nothing. It returns all faults at once, by line,
// and none of them has a token in it.
func ReadCredentials(r io.Reader) (Credentials, error) {
	c := Credentials{byName: make(map[string]credential)}
	var faults []error
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := c.add(fields); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number, err))
		}
	}
	if err := lines.Err(); err != nil {
		faults = append(faults, fmt.Errorf("read credentials of agents: %w", err))
	}
	if err := errors.Join(faults...); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

func (c *Credentials) add(fields []string) error {
	if len(fields) != 3 {
		return fmt.Errorf("%d words, want 3: NAME TOKEN BACKEND[,BACKEND...]", len(fields))
	}
	name, token := fields[0], fields[1]
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	want(len(name) <= maxAgentName && utf8.ValidString(name), "a name of %d bytes, want at most %d, of UTF-8", len(name), maxAgentName)
	want(len(token) >= minToken && len(token) <= maxToken, "a token of %d bytes, want %d to %d", len(token), minToken, maxToken)
	_, twice := c.byName[name]
	want(!twice, "agent %q stands there twice, want one line for each name", name)
	want(len(c.byName) < maxAgents, "more than %d agents", maxAgents)
	backends := make(map[string]bool)
	for id := range strings.SplitSeq(fields[2], ",") {
		want(id != "", "an empty backend id in the list, want ids with commas between them")
		want(len(id) <= wire.MaxWord, "a backend id of %d bytes, want at most %d", len(id), wire.MaxWord)
		backends[id] = true
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	c.byName[name] = credential{[]byte(token), backends}
	return nil
}

// Token is the token of the agent of that name.
func (c Credentials) Token(name string) (token []byte, ok bool) {
	found, ok := c.byName[name]
	return found.token, ok
}

// May is whether the agent may describe the backend.
func (c Credentials) May(name, backend string) bool { return c.byName[name].backends[backend] }

// Names lists the agents.
func (c Credentials) Names() []string { return slices.Sorted(maps.Keys(c.byName)) }
