package link

import "context"

// Links are this node's connections with its peers.
type Links struct {
	c Config
}

// New checks the configuration; Run starts.
func New(c Config) (*Links, error) {
	c.setDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Links{c: c}, nil
}

// Run accepts and dials until ctx ends; it returns when all links are down and
// all goroutines have ended.
func (l *Links) Run(ctx context.Context) { <-ctx.Done() }

// SetPeers says who is to be linked with.
func (l *Links) SetPeers(targets []Target) {}
