package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"kvca/cluster/link"
	"kvca/cluster/wire"
)

// Config says whom an agent streams to, and what.
type Config struct {
	// Nodes are the link addresses of nodes, HOST:PORT; the agent begins with one at
	// random and goes on to the next where that one fails.
	Nodes []string
	// Name and Token are its credential. The token is proved, never sent.
	Name  string
	Token []byte
	// TLS protects the link; nil for none: then tokens of prompts can be read on
	// the way.
	TLS link.TLS
	// Backends are what it describes. A node takes only those that it has in the
	// agent's credential.
	Backends []Backend
	// MaxBytes bounds the memory of all blocks together; default 512 MiB. A block
	// of 16 tokens takes about 300 bytes. Less than the engines' caches need leaves
	// out the blocks that come last.
	MaxBytes int64

	Logger *slog.Logger
	// Dial replaces sockets in tests.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
}

// Backend is one engine.
type Backend struct {
	// ID is the backend's id at the nodes.
	ID string
	// Ranks is how many data-parallel ranks it has; default 1.
	Ranks int
}

const defaultMaxBytes = 512 << 20

func (c *Config) validate() error {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var faults []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("agent: "+format, args...))
		}
	}
	want(len(c.Nodes) > 0, "Nodes is empty, want the link address of a node at least")
	for _, n := range c.Nodes {
		_, _, err := net.SplitHostPort(n)
		want(err == nil, "node %q: want HOST:PORT", n)
	}
	want(c.Name != "" && len(c.Name) <= maxAgentName, "Name has %d bytes, want 1 to %d", len(c.Name), maxAgentName)
	want(len(c.Token) >= minToken && len(c.Token) <= maxToken, "Token has %d bytes, want %d to %d, as in the nodes' file", len(c.Token), minToken, maxToken)
	want(c.MaxBytes > 0, "MaxBytes is %d, want more than 0", c.MaxBytes)
	want(len(c.Backends) > 0, "Backends is empty, want one at least")
	c.Backends = slices.Clone(c.Backends)
	seen := make(map[string]bool)
	for i := range c.Backends {
		b := &c.Backends[i]
		if b.Ranks == 0 {
			b.Ranks = 1
		}
		want(b.ID != "" && len(b.ID) <= wire.MaxWord, "a backend id of %d bytes, want 1 to %d", len(b.ID), wire.MaxWord)
		want(!seen[b.ID], "backend %q stands there twice", b.ID)
		want(b.Ranks > 0 && b.Ranks <= maxRanks, "backend %q: Ranks is %d, want 1 to %d", b.ID, b.Ranks, maxRanks)
		seen[b.ID] = true
	}
	return errors.Join(faults...)
}

// maxRanks is more than engines have.
const maxRanks = 1024
