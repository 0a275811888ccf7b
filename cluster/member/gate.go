package member

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/vmihailenco/msgpack/v5"
)

// gate is memberlist's transport behind a check of labels, so that a node of another
// cluster is counted, logged and answered with both names, where memberlist would
// hang up. It also bounds what strangers may open and claim.
//
// Two goroutines pump what comes in, one more a stream until its label is read. All
// end with Shutdown.
type gate struct {
	inner    memberlist.Transport
	label    string
	sealed   bool // gossip is encrypted: what can be read is from a node of ours
	watch    watcher
	packets  chan *memberlist.Packet
	incoming chan net.Conn
	done     chan struct{}
	wait     sync.WaitGroup

	closing sync.Once
	mu      sync.Mutex
	open    map[net.Conn]struct{} // inbound streams
	dialled map[net.Conn]struct{}
}

// watcher is told what the gate sees.
type watcher interface {
	foreign(label, from string)       // a packet or stream of another cluster
	nonsense(transport string)        // what has no label, or half of one
	refusedBy(address, answer string) // what a node that was dialled says of us
	tooMany()                         // streams
}

var _ memberlist.NodeAwareTransport = (*gate)(nil)

const (
	maxStreams     = 64              // open at a time from outside
	maxStreamBytes = 4 << 20         // read from one: far above the state of maxMembers
	labelPatience  = 2 * time.Second // for a stream's first bytes
	maxAnswer      = 1024            // bytes of a refusal that are read
)

func newGate(inner memberlist.Transport, label string, sealed bool, w watcher) *gate {
	g := &gate{
		inner: inner, label: label, sealed: sealed, watch: w,
		packets:  make(chan *memberlist.Packet),
		incoming: make(chan net.Conn),
		done:     make(chan struct{}),
		open:     map[net.Conn]struct{}{},
		dialled:  map[net.Conn]struct{}{},
	}
	g.wait.Go(g.pumpPackets)
	g.wait.Go(g.pumpStreams)
	return g
}

func (g *gate) pumpPackets() {
	for {
		select {
		case p := <-g.inner.PacketCh():
			if !g.mine(p) {
				continue
			}
			select {
			case g.packets <- p:
			case <-g.done:
				return
			}
		case <-g.done:
			return
		}
	}
}

// mine takes the label off a packet and tells whether it is ours.
func (g *gate) mine(p *memberlist.Packet) bool {
	buf, label, err := memberlist.RemoveLabelHeaderFromPacket(p.Buf)
	switch {
	case err != nil || label == "":
		g.watch.nonsense("packet")
		return false
	case label != g.label:
		g.watch.foreign(label, p.From.String())
		return false
	case !g.sealed && inflates(buf):
		g.watch.nonsense("packet")
		return false
	}
	p.Buf = buf
	return true
}

func (g *gate) pumpStreams() {
	for {
		select {
		case c := <-g.inner.StreamCh():
			if !g.enter(c) {
				g.watch.tooMany()
				_ = c.Close()
				continue
			}
			g.wait.Go(func() { g.receive(c) })
		case <-g.done:
			return
		}
	}
}

func (g *gate) enter(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.open) >= maxStreams {
		return false
	}
	g.open[c] = struct{}{}
	return true
}

func (g *gate) leave(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, c)
	delete(g.dialled, c)
}

// receive reads a stream's label and hands it on, or answers that it is not ours.
func (g *gate) receive(c net.Conn) {
	stream := &inbound{&limited{c, maxStreamBytes}, g, c}
	_ = c.SetDeadline(time.Now().Add(labelPatience))
	labelled, label, err := memberlist.RemoveLabelHeaderFromStream(stream)
	switch {
	case err != nil || label == "":
		g.watch.nonsense("stream")
		_ = stream.Close()
	case label != g.label:
		g.watch.foreign(label, c.RemoteAddr().String())
		g.answer(stream, label)
	default:
		g.hand(begin(labelled))
	}
}

// hand gives memberlist a stream.
func (g *gate) hand(c *begun) {
	if !g.sealed && !c.modest() {
		g.watch.nonsense("stream")
		_ = c.Close()
		return
	}
	select {
	case g.incoming <- c:
	case <-g.done:
		_ = c.Close()
	}
}

// answer tells a node of another cluster why it is not let in, then reads until it
// hangs up: closing with bytes unread would reset the stream before the answer is read.
func (g *gate) answer(stream net.Conn, label string) {
	r := refusal{reason: otherCluster, text: foreignText(label, g.label)}
	body, err := msgpack.Marshal(map[string]string{"Error": r.Error()})
	if err == nil {
		_, _ = stream.Write(append([]byte{errMsg}, body...))
		_, _ = io.Copy(io.Discard, stream)
	}
	_ = stream.Close()
}

// limited is a stream of which so much is read at most.
type limited struct {
	net.Conn
	left int
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("read gossip stream: more than %d bytes", maxStreamBytes)
	}
	n, err := l.Conn.Read(b[:min(len(b), l.left)])
	l.left -= n
	return n, err
}

// inbound is a stream from outside; closing it makes room for another.
type inbound struct {
	*limited
	gate *gate
	conn net.Conn
}

func (i *inbound) Close() error {
	i.gate.leave(i.conn)
	return i.conn.Close()
}

// outbound is a stream that was dialled. It looks at how the answer begins, since
// with encryption memberlist would not read a refusal by another cluster, and ends
// the stream with it.
type outbound struct {
	*begun
	gate   *gate
	conn   net.Conn
	looked bool
}

func (o *outbound) Read(b []byte) (int, error) {
	if !o.looked {
		o.looked = true
		if err := o.look(); err != nil {
			return 0, err
		}
	}
	return o.begun.Read(b)
}

func (o *outbound) look() error {
	modest := o.modest() // waits for the first bytes, sealed or not
	if !modest && !o.gate.sealed {
		o.gate.watch.nonsense("stream")
		return errImmodest
	}
	if head, _ := o.r.Peek(o.r.Buffered()); len(head) > 0 {
		if text, ok := refusalIn(head); ok {
			o.gate.watch.refusedBy(o.RemoteAddr().String(), text)
			return errors.New(text)
		}
	}
	return nil
}

func (o *outbound) Close() error {
	o.gate.leave(o.conn)
	return o.conn.Close()
}

// refusalIn finds a gate's answer in how a stream begins.
func refusalIn(b []byte) (string, bool) {
	if b[0] != errMsg {
		return "", false
	}
	at := bytes.Index(b, []byte(refusedPrefix))
	if at < 0 {
		return "", false
	}
	return strings.ToValidUTF8(string(b[at:]), "?"), true
}

func (g *gate) PacketCh() <-chan *memberlist.Packet { return g.packets }
func (g *gate) StreamCh() <-chan net.Conn           { return g.incoming }

func (g *gate) FinalAdvertiseAddr(ip string, port int) (net.IP, int, error) {
	return g.inner.FinalAdvertiseAddr(ip, port)
}

func (g *gate) WriteTo(b []byte, addr string) (time.Time, error) {
	return g.inner.WriteTo(b, addr)
}

func (g *gate) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if aware, ok := g.inner.(memberlist.NodeAwareTransport); ok {
		return aware.WriteToAddress(b, a)
	}
	return g.inner.WriteTo(b, a.Addr)
}

func (g *gate) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return g.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout also gives the stream a first deadline: memberlist writes the
// label before it sets its own.
func (g *gate) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	c, err := g.dial(a, timeout)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(timeout))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dialled[c] = struct{}{}
	return &outbound{begun: begin(&limited{c, maxStreamBytes}), gate: g, conn: c}, nil
}

func (g *gate) dial(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if aware, ok := g.inner.(memberlist.NodeAwareTransport); ok {
		return aware.DialAddressTimeout(a, timeout)
	}
	return g.inner.DialTimeout(a.Addr, timeout)
}

// Shutdown closes the transport, then the streams that memberlist is still busy with,
// so that its goroutines end.
func (g *gate) Shutdown() (err error) {
	g.closing.Do(func() {
		err = g.inner.Shutdown()
		close(g.done)
		g.closeStreams()
		g.wait.Wait()
	})
	return err
}

func (g *gate) closeStreams() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, set := range []map[net.Conn]struct{}{g.open, g.dialled} {
		for c := range set {
			_ = c.Close()
		}
	}
}
