package simnet

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

const maxPackets = 1024 // that wait at a port

// packetPort is memberlist's transport on a host.
type packetPort struct {
	host    *Host
	port    int
	ch      chan *memberlist.Packet
	held    []*memberlist.Packet // what came while the host was paused
	unsent  []unsent             // what its process would have sent meanwhile
	streams *listener
	closed  bool
}

type unsent struct {
	to   string
	data []byte
}

var _ memberlist.NodeAwareTransport = (*packetPort)(nil)

// Packet opens memberlist's transport, packets and streams, at a port.
// It panics where the port is taken or the host was killed: a test's mistake.
func (h *Host) Packet(port int) memberlist.Transport {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	l, err := h.listen(port)
	if err != nil {
		panic(fmt.Sprintf("simnet: open port %d of %s: %v", port, h.name, err))
	}
	p := &packetPort{host: h, port: port, ch: make(chan *memberlist.Packet, maxPackets), streams: l}
	h.ports[port] = p
	return p
}

// FinalAdvertiseAddr is what is asked for, else the host's own address.
func (p *packetPort) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	if ip == "" {
		return p.host.ip.AsSlice(), p.port, nil
	}
	parsed := net.ParseIP(ip)
	if parsed == nil {
		return nil, 0, fmt.Errorf("parse advertise address %q", ip)
	}
	if v4 := parsed.To4(); v4 != nil {
		parsed = v4
	}
	return parsed, port, nil
}

func (p *packetPort) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return p.WriteTo(b, a.Addr)
}

// WriteTo sends one packet, with the network's faults. A packet to nobody is lost
// without an error.
func (p *packetPort) WriteTo(b []byte, addr string) (time.Time, error) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if p.closed {
		return now, &net.OpError{Op: "write", Net: "udp", Err: net.ErrClosed}
	}
	switch {
	case !p.host.paused:
		p.emit(addr, b)
	case len(p.unsent) < maxPackets:
		p.unsent = append(p.unsent, unsent{addr, slices.Clone(b)})
	}
	return now, nil
}

// emit sends a packet, or loses or doubles it. Lock held.
func (p *packetPort) emit(addr string, b []byte) {
	n := p.host.net
	to, port, err := n.find(addr)
	if err != nil || n.rng.Float64() < n.packets.drop {
		return
	}
	p.send(to, port, b)
	if n.rng.Float64() < n.packets.duplicate {
		p.send(to, port, b)
	}
}

// send puts one copy on its way. Lock held.
func (p *packetPort) send(to *Host, port int, b []byte) {
	n := p.host.net
	wait := n.draw(n.packets.delay)
	if n.rng.Float64() < n.packets.reorder {
		wait += 2*(n.packets.delay.delay+n.packets.jitter) + time.Millisecond
	}
	packet := &memberlist.Packet{Buf: slices.Clone(b), From: &net.UDPAddr{IP: p.host.ip.AsSlice(), Port: p.port}}
	if wait <= 0 {
		n.deliver(p.host, to, port, packet)
		return
	}
	time.AfterFunc(wait, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.deliver(p.host, to, port, packet)
	})
}

// deliver ends a packet's way. Lock held.
func (n *Network) deliver(from, to *Host, port int, packet *memberlist.Packet) {
	p := to.ports[port]
	if p == nil || !n.reach(from, to) {
		return
	}
	packet.Timestamp = time.Now()
	switch {
	case !to.paused:
		p.push(packet)
	case len(p.held) < maxPackets:
		p.held = append(p.held, packet)
	}
}

func (p *packetPort) push(packet *memberlist.Packet) {
	select {
	case p.ch <- packet:
	default: // the buffer is full, as a kernel's may be
	}
}

func (p *packetPort) flush() {
	for _, packet := range p.held {
		p.push(packet)
	}
	for _, u := range p.unsent {
		p.emit(u.to, u.data)
	}
	p.held, p.unsent = nil, nil
}

func (p *packetPort) PacketCh() <-chan *memberlist.Packet { return p.ch }

func (p *packetPort) StreamCh() <-chan net.Conn { return p.streams.backlog }

func (p *packetPort) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return p.DialTimeout(a.Addr, timeout)
}

func (p *packetPort) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return p.host.dial(ctx, addr, func() bool { return p.closed })
}

// Shutdown closes the port.
func (p *packetPort) Shutdown() error {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	p.closed = true
	if p.host.ports[p.port] == p {
		delete(p.host.ports, p.port)
	}
	p.streams.close()
	return nil
}
