package simnet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Network connects hosts.
type Network struct {
	mu      sync.Mutex
	rng     *rand.Rand
	hosts   map[string]*Host
	byIP    map[netip.Addr]*Host
	names   map[string][]string // what Name made
	conns   map[*conn]struct{}  // ends that are open
	group   map[string]int      // of the partition; nil while whole
	changed chan struct{}       // closed and made anew when faults change

	packets packetFaults
	streams delay
}

type packetFaults struct {
	drop, duplicate, reorder float64
	delay
}

type delay struct{ delay, jitter time.Duration }

// New makes a network whose faults follow from seed.
func New(seed uint64) *Network {
	return &Network{
		rng:     rand.New(rand.NewPCG(seed, 0x6b766361)),
		hosts:   map[string]*Host{},
		byIP:    map[netip.Addr]*Host{},
		names:   map[string][]string{},
		conns:   map[*conn]struct{}{},
		changed: make(chan struct{}),
	}
}

// Host is one machine. Its fields are guarded by the network's mutex.
type Host struct {
	net  *Network
	name string
	ip   netip.Addr

	paused, killed bool
	ports          map[int]*packetPort
	listeners      map[int]*listener
	ephemeral      int // the last port that a dial went out from
}

// Host gives the host of that name, made at the first call.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[name]; h != nil {
		return h
	}
	number := len(n.hosts) + 1
	h := &Host{
		net: n, name: name,
		ip:        netip.AddrFrom4([4]byte{10, 0, byte(number >> 8), byte(number)}),
		ports:     map[int]*packetPort{},
		listeners: map[int]*listener{},
		ephemeral: 32768,
	}
	n.hosts[name], n.byIP[h.ip] = h, h
	return h
}

// Name is the host's name.
func (h *Host) Name() string { return h.name }

// IP is the host's address.
func (h *Host) IP() netip.Addr { return h.ip }

// Name makes name resolve to the hosts, in place of what it resolved to.
func (n *Network) Name(name string, hosts ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names[name] = slices.Clone(hosts)
}

// LookupNetIP resolves hosts' names and those made by Name, as net.Resolver does.
func (n *Network) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	names, ok := n.names[host]
	if !ok {
		names = []string{host}
	}
	var ips []netip.Addr
	for _, name := range names {
		if h := n.hosts[name]; h != nil {
			ips = append(ips, h.ip)
		}
	}
	if len(ips) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return ips, nil
}

// find tells which host and port addr means. Lock held.
func (n *Network) find(addr string) (*Host, int, error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, 0, err
	}
	port, err := strconv.Atoi(service)
	if err != nil {
		return nil, 0, fmt.Errorf("port of %q: %w", addr, err)
	}
	if h := n.hosts[host]; h != nil {
		return h, port, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if h := n.byIP[ip.Unmap()]; h != nil {
			return h, port, nil
		}
	}
	return nil, 0, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// draw is d's delay with its jitter. Lock held.
func (n *Network) draw(d delay) time.Duration {
	if d.jitter <= 0 {
		return d.delay
	}
	return d.delay + time.Duration(n.rng.Int64N(int64(d.jitter)))
}
