package link

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

var errTLS = errors.New("TLS")

// A handshake is one connection on its way to become a link.
type handshake struct {
	l       *Links
	conn    net.Conn // to be closed
	outlet  *outlet
	stream  net.Conn // plain: the outlet; else TLS above it
	in      frameReader
	dialled bool
	self    Hello
}

// shake takes a connection through TLS and the two hellos. target is the name
// that was dialled, "" for an accepted connection. Where it fails the connection
// is still open.
func (l *Links) shake(ctx context.Context, conn net.Conn, target string) (*Peer, error) {
	h := &handshake{l: l, conn: conn, outlet: newOutlet(conn), dialled: target != "", self: l.c.Self()}
	return h.perform(ctx, func() (*Peer, error) { return h.introduce(target) })
}

// perform secures the connection and has both sides introduced, in time.
func (h *handshake) perform(ctx context.Context, introduce func() (*Peer, error)) (*Peer, error) {
	conn, l := h.conn, h.l
	if err := conn.SetDeadline(time.Now().Add(l.c.HandshakeTimeout)); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := h.secure(ctx); err != nil {
		return nil, err
	}
	h.in = frameReader{r: h.stream, limit: maxHello}
	p, err := introduce()
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	return p, nil
}

func (h *handshake) secure(ctx context.Context) error {
	h.stream = h.outlet
	if h.l.c.TLS == nil {
		return nil
	}
	var t *tls.Conn
	if h.dialled {
		t = tls.Client(h.outlet, h.l.c.TLS.Client())
	} else {
		t = tls.Server(h.outlet, h.l.c.TLS.Server())
	}
	h.stream = t
	if err := t.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("%w handshake: %w", errTLS, err)
	}
	return nil
}

// introduce exchanges hellos and verdicts. The dialler speaks first and says its
// verdict last: each side writes only when the other reads.
func (h *handshake) introduce(target string) (*Peer, error) {
	if h.dialled {
		if err := h.say(h.hello()); err != nil {
			return nil, err
		}
	}
	peer, err := h.hear()
	if err != nil {
		return nil, err
	}
	if peer.Role == AgentRole && !h.dialled {
		return h.admitAgent(peer)
	}
	p, ours := h.judge(peer, target)
	theirs, err := h.exchange(ours)
	switch {
	case ours != nil: // counts more than theirs, or than a silence of theirs
		ours.peer = peer.Node
		return nil, ours
	case err != nil:
		return nil, err
	case theirs != nil:
		theirs.peer = peer.Node
		return nil, theirs
	}
	p.in = h.in // only now: it may hold what follows the verdict
	return p, nil
}

// exchange says our verdict and hears theirs.
func (h *handshake) exchange(ours *refusal) (theirs *refusal, err error) {
	if !h.dialled {
		if err := h.say(append(h.hello(), verdict(ours)...)); err != nil {
			return nil, err
		}
		return h.verdict()
	}
	if theirs, err = h.verdict(); err != nil {
		return nil, err
	}
	return theirs, h.say(verdict(ours))
}

// judge says what this side thinks of the other.
func (h *handshake) judge(peer *Hello, target string) (*Peer, *refusal) {
	refuse := func(c refusalCode, format string, args ...any) (*Peer, *refusal) {
		return nil, &refusal{code: c, text: fmt.Sprintf(format, args...)}
	}
	switch {
	case peer.Node == h.self.Node:
		return refuse(refusedName, "both nodes are named %q", peer.Node)
	case h.dialled && peer.Node != target:
		return refuse(refusedName, "dialled %q, reached %q", target, peer.Node)
	}
	version, err := agree(&h.self, peer)
	if err != nil {
		return refuse(refusedProtocol, "%v", err)
	}
	if err := h.l.c.Handler.Check(peer); err != nil {
		return refuse(refusedCheck, "%v", err)
	}
	p := newPeer(h, peer, version)
	if r := h.l.objection(p); r != nil {
		return nil, r
	}
	return p, nil
}

func (h *handshake) hello() []byte {
	body := h.self.append(nil)
	return appendFrame(nil, kindHello, len(body), body)
}

func verdict(r *refusal) []byte {
	if r == nil {
		return appendFrame(nil, kindAccept, 0)
	}
	body := r.body()
	return appendFrame(nil, kindRefuse, len(body), body)
}

func (h *handshake) say(b []byte) error {
	if _, err := h.stream.Write(b); err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	return nil
}

func (h *handshake) hear() (*Hello, error) {
	kind, body, err := h.in.next()
	if err != nil {
		return nil, fmt.Errorf("read hello: %w", err)
	}
	if kind != kindHello {
		return nil, fmt.Errorf("%w: kind %#x where a hello was due", errGarbage, kind)
	}
	peer, err := decodeHello(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	return peer, nil
}

func (h *handshake) verdict() (*refusal, error) {
	kind, body, err := h.in.next()
	if err != nil {
		return nil, fmt.Errorf("read verdict: %w", err)
	}
	switch kind {
	case kindAccept:
		return nil, nil
	case kindRefuse:
		return theirRefusal(body), nil
	}
	return nil, fmt.Errorf("%w: kind %#x where a verdict was due", errGarbage, kind)
}
