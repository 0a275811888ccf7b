package simnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/hashicorp/memberlist"
)

var errTodo = errors.New("not yet")

// Network connects hosts.
type Network struct{}

// New makes a network whose faults follow from seed.
func New(seed uint64) *Network { return &Network{} }

// Host gives the host of that name, made at the first call.
func (n *Network) Host(name string) *Host { return &Host{} }

// Name makes a DNS name that resolves to the hosts.
func (n *Network) Name(name string, hosts ...string) {}

// LookupNetIP resolves hosts' names and those made by Name, as net.Resolver does.
func (n *Network) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	return nil, errTodo
}

// SetPackets sets the faults of packets.
func (n *Network) SetPackets(drop, duplicate, reorder float64, delay, jitter time.Duration) {}

// SetStreams sets the one-way delay of streams.
func (n *Network) SetStreams(delay, jitter time.Duration) {}

// Partition leaves only hosts of one group connected.
func (n *Network) Partition(groups ...[]string) {}

// Heal ends a partition.
func (n *Network) Heal() {}

// CutStreams resets the connections between two hosts.
func (n *Network) CutStreams(a, b string) {}

// Close kills every host.
func (n *Network) Close() {}

// Host is one machine.
type Host struct{}

// Name is the host's name.
func (h *Host) Name() string { return "" }

// IP is the host's address.
func (h *Host) IP() netip.Addr { return netip.Addr{} }

// Packet opens memberlist's transport at a port.
func (h *Host) Packet(port int) memberlist.Transport { return nil }

// Listen listens for streams at a port.
func (h *Host) Listen(port int) (net.Listener, error) { return nil, errTodo }

// Dial connects to "name:port" or "ip:port".
func (h *Host) Dial(ctx context.Context, addr string) (net.Conn, error) { return nil, errTodo }

// Pause stops the host's process as SIGSTOP does.
func (h *Host) Pause() {}

// Resume undoes Pause.
func (h *Host) Resume() {}

// Kill ends the host's process.
func (h *Host) Kill() {}

// Restart lets a new process open ports after Kill.
func (h *Host) Restart() {}
