package member

import (
	"context"
	"log/slog"
	"net/netip"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"
)

// KeySource gives the keys of gossip encryption: the one to send with and all
// that are accepted. It is asked every second; a change rotates the keys.
type KeySource interface {
	GossipKeys() (primary []byte, all [][]byte)
}

// Resolver turns a name into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what Members needs.
type Config struct {
	Name       string
	Cluster    string
	Bind       string
	Advertise  string
	Join       []string
	Meta       Meta
	Mixed      bool
	Keys       KeySource
	Transport  memberlist.Transport
	Resolver   Resolver
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	OnChange   func(live []Member)
	OnFact     func(Fact)
}
