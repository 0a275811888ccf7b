package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kvca/state/ring"
)

const (
	agentBlock = 64 // tokens that one id stands for
	maxDepth   = 8  // of sub-agents of sub-agents; the published file has one
	maxID      = 1 << 48
	agentWant  = `want {"s": session, "t": s, "in": tokens, "out": tokens, "think": s, "api": s, "m": model, "h": [[first id, count], ...]}`
)

// agentLine is one request, or what precedes a session (Meta). Pointers tell what is missing; Think and API may be.
type agentLine struct {
	Chain  string     `json:"s"` // session, or session/sN
	Meta   int        `json:"meta"`
	Block  int        `json:"bs"`
	At     *float64   `json:"t"` // since its chain began
	Input  *int       `json:"in"`
	Output *int       `json:"out"`
	Think  *float64   `json:"think"` // from the end of the one before in its chain
	API    *float64   `json:"api"`   // how long it took
	Model  string     `json:"m"`
	Runs   [][]uint64 `json:"h"` // ids of the prompt's complete blocks, as (first, count)
}

func parseAgentLine(b []byte) (*agentLine, error) {
	l := new(agentLine)
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%s: %w", agentWant, err)
	}
	if l.root() == "" {
		return nil, fmt.Errorf("s: want a session's name, came %q", l.Chain)
	}
	if depth := strings.Count(l.Chain, "/"); depth > maxDepth {
		return nil, fmt.Errorf("s: want at most %d slashes, came %d", maxDepth, depth)
	}
	if l.Meta != 0 {
		return l, l.checkMeta()
	}
	return l, l.checkRequest()
}

func (l *agentLine) checkMeta() error {
	if l.Block != agentBlock {
		return fmt.Errorf("bs: want %d, came %d", agentBlock, l.Block)
	}
	return nil
}

func (l *agentLine) checkRequest() error {
	if err := checkTime("t", l.At, time.Second); err != nil {
		return err
	}
	if err := checkOptionalTime("think", l.Think, time.Second); err != nil {
		return err
	}
	if err := checkOptionalTime("api", l.API, time.Second); err != nil {
		return err
	}
	if err := checkInt("in", l.Input, 1, maxLength); err != nil {
		return err
	}
	if err := checkInt("out", l.Output, 0, maxLength); err != nil {
		return err
	}
	return l.checkRuns()
}

// checkRuns holds that there is an id for each complete block, no more.
func (l *agentLine) checkRuns() error {
	want, have := uint64(*l.Input/agentBlock), uint64(0)
	for i, r := range l.Runs {
		if len(r) != 2 || r[0] > maxID || r[1] < 1 || r[1] > want {
			return fmt.Errorf("h[%d]: want [first id, count] with a count of 1 to %d, came %v", i, want, r)
		}
		have += r[1]
	}
	if have != want {
		return fmt.Errorf("h: want %d ids for in %d, came %d", want, *l.Input, have)
	}
	return nil
}

// root is the session that a chain belongs to.
func (l *agentLine) root() string {
	root, _, _ := strings.Cut(l.Chain, "/")
	return root
}

// parent is the chain that spawned this one, "" for the session's own.
func (l *agentLine) parent() string { return l.Chain[:max(strings.LastIndexByte(l.Chain, '/'), 0)] }

func (l *agentLine) names() []uint64 {
	t := text{
		name:  mix(ring.Key(l.root()), ring.Key(l.Model)),
		names: make([]uint64, 0, *l.Input/UnitTokens),
	}
	for _, r := range l.Runs {
		for i := range r[1] {
			t.write(r[0]+i, agentBlock)
		}
	}
	return t.names
}
