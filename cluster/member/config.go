package member

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/hashicorp/memberlist"
	"github.com/prometheus/client_golang/prometheus"
)

// Resolver turns a name into addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// serviceResolver is a Resolver that knows SRV records too; *net.Resolver is one.
type serviceResolver interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// Config is what Members needs.
type Config struct {
	// Name is this node's, unique in the cluster, 1 to 128 bytes. A name that
	// survives restarts (a pod's of a stateful set) lets the node take its own share
	// of the backends back; a random one moves shares at each restart. Required.
	Name string
	// Cluster is the cluster's name, 1 to 128 bytes, "namespace/name" where addresses
	// are reused. Nodes of another one are refused. Required.
	Cluster string
	// Bind is where gossip listens, TCP and UDP, "ip:port"; port 0 takes a free one.
	// Not used with Transport. Default "127.0.0.1:7946".
	Bind string
	// Advertise is where others reach it, "ip:port" or "ip". Default: Bind's address; for
	// an unspecified one (0.0.0.0) this host's first private address.
	Advertise string
	// Join are "host:port" of other nodes; a name may resolve to many. "srv://name" are
	// the targets and ports of the name's SRV records. It may contain
	// this node and nodes that are not there yet. Empty: others join this one.
	Join []string
	// Meta is what the others learn of this node. Cluster and Mixed in it are set by New.
	Meta Meta
	// Mixed bears nodes of another block size that bear this one's: for a rolling
	// change of it. Off again, a wrong block size is noticed instead of costing hits.
	Mixed bool
	// Keys encrypt gossip; nil sends it in the clear, and then everyone who reaches
	// the port and knows Cluster can pretend to be a node.
	Keys KeySource
	// Transport replaces sockets, in tests.
	Transport memberlist.Transport
	// Resolver resolves names in Join. Default net.DefaultResolver.
	Resolver Resolver
	// Logger gets one line for each event an operator would act on. Default slog.Default().
	Logger *slog.Logger
	// Registerer gets kvca_cluster_*; nil registers nothing.
	Registerer prometheus.Registerer
	// OnChange gets the live members, this one included and suspects too, sorted by
	// name, after they or their metadata changed; changes in quick succession come as
	// one. First with this node alone. Called from Run's goroutine, like OnFact: neither
	// may wait for the other side of a network.
	OnChange func(live []Member)
	// OnFact gets each fact that is news here and was not told by Tell.
	OnFact func(Fact)
}

const defaultPort = 7946

func (c *Config) defaults() {
	if c.Bind == "" {
		c.Bind = fmt.Sprintf("127.0.0.1:%d", defaultPort)
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.OnChange == nil {
		c.OnChange = func([]Member) {}
	}
	if c.OnFact == nil {
		c.OnFact = func(Fact) {}
	}
	c.Meta.Cluster, c.Meta.Mixed = c.Cluster, c.Mixed
}

// addresses are where the sockets listen and what is advertised; advertise is zero
// where the transport knows.
type addresses struct {
	bind, advertise netip.AddrPort
}

// check gives all faults at once.
func (c *Config) check() (addresses, error) {
	var faults []error
	for _, s := range []struct{ what, value string }{{"node name", c.Name}, {"cluster name", c.Cluster}} {
		if s.value == "" || len(s.value) > maxName {
			faults = append(faults, fmt.Errorf("%s %.20q has %d bytes: give it 1 to %d", s.what, s.value, len(s.value), maxName))
		}
	}
	if err := c.Meta.sane(); err != nil {
		faults = append(faults, fmt.Errorf("own metadata: %w", err))
	} else if _, err := c.Meta.encode(); err != nil {
		faults = append(faults, err)
	}
	joins, err := c.joins()
	faults = append(faults, err)
	a, err := c.addresses()
	faults = append(faults, err)
	if err == nil {
		faults = append(faults, a.reachableFrom(joins))
	}
	return a, errors.Join(faults...)
}
