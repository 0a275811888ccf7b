package link

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
)

// maxAgents bounds the agents that are linked at a time.
const maxAgents = 256

// nonce is a number that is used once, so that no proof is worth anything twice.
type nonce [32]byte

func newNonce() (n nonce) {
	rand.Read(n[:]) //nolint:errcheck // never fails
	return n
}

// The two proofs of one token; a label is for ever.
const (
	agentProof = "kvca agent proof"
	nodeProof  = "kvca node proof"
)

// prove makes the proof that whoever has token is at this connection.
func (h *handshake) prove(label string, token []byte, agent *Hello, node nonce) []byte {
	mac := hmac.New(sha256.New, token)
	mac.Write([]byte(label))
	mac.Write(agent.nonce[:])
	mac.Write(node[:])
	mac.Write(h.binding())
	mac.Write([]byte(agent.Node))
	return mac.Sum(nil)
}

// binding is what only the two ends of a TLS connection know, so that a proof
// can't be passed on over another one; nothing without TLS.
func (h *handshake) binding() []byte {
	t, ok := h.stream.(*tls.Conn)
	if !ok {
		return nil
	}
	state := t.ConnectionState()
	key, err := state.ExportKeyingMaterial("EXPORTER-kvca-agent", nil, 32)
	if err != nil {
		return nil // both sides fail alike
	}
	return key
}

// admitAgent is the node's side of an agent's handshake, once its hello is there.
func (h *handshake) admitAgent(agent *Hello) (*Peer, error) {
	h.self.nonce = newNonce()
	p, ours := h.judgeAgent(agent)
	if err := h.say(append(h.hello(), verdict(ours)...)); err != nil {
		return nil, err
	}
	if ours != nil {
		ours.peer = "agent " + agent.Node
		return nil, ours
	}
	token, known := h.l.c.Token(agent.Node)
	if !known {
		n := newNonce() // so that it takes as long to find out
		token = n[:]
	}
	shown, err := h.proof(kindProof)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(shown, h.prove(agentProof, token, agent, h.self.nonce)) || !known {
		r := &refusal{code: refusedCredential, peer: "agent " + agent.Node, text: "there is no agent of that name with that token"}
		h.say(verdict(r)) //nolint:errcheck // it is refused either way
		return nil, r
	}
	own := h.prove(nodeProof, token, agent, h.self.nonce)
	if err := h.say(appendFrame(nil, kindAccept, len(own), own)); err != nil {
		return nil, err
	}
	p.in = h.in
	return p, nil
}

// judgeAgent says what a node thinks of an agent before it has proved itself.
func (h *handshake) judgeAgent(agent *Hello) (*Peer, *refusal) {
	if h.l.c.Agents == nil {
		return nil, &refusal{code: refusedCredential, text: "this node lets no agents in: it was given no credentials of agents"}
	}
	version, err := agree(&h.self, agent)
	if err != nil {
		return nil, &refusal{code: refusedProtocol, text: err.Error()}
	}
	if r := h.l.agentObjection(); r != nil {
		return nil, r
	}
	p := newPeer(h, agent, version)
	p.receiver = h.l.c.Agents
	p.confirmed.Store(true)
	return p, nil
}

// proof reads a proof, or a refusal in its place.
func (h *handshake) proof(want byte) ([]byte, error) {
	kind, body, err := h.in.next()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read proof: %w", err)
	case kind == kindRefuse:
		return nil, theirRefusal(body)
	case kind != want:
		return nil, fmt.Errorf("%w: kind %#x where a proof was due", errGarbage, kind)
	}
	return body, nil
}

func (l *Links) agentObjection() *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return &refusal{code: refusedClosing, text: fmt.Sprintf("%s is stopping", l.name)}
	case len(l.agents) >= maxAgents:
		return &refusal{code: refusedCrowded, text: fmt.Sprintf("%d agents are linked", maxAgents)}
	}
	return nil
}

// serveAgent runs an agent's link until it is down.
func (l *Links) serveAgent(p *Peer) {
	p.m = l.m.nobody
	if !l.admitAgent(p) {
		p.farewell(endedf(byShutdown, "no room for another agent"))
		p.conn.Close()
		return
	}
	defer close(p.down)
	defer l.removeAgent(p)
	l.c.Logger.Info("agent linked", slog.String("agent", p.Name()), slog.String("host", remoteHost(p.conn)))
	p.live()
	l.c.Logger.Info("agent link down", slog.String("agent", p.Name()),
		slog.String("reason", string(p.ending.reason)), slog.String("error", p.ending.Error()))
}

func (l *Links) admitAgent(p *Peer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.agents) >= maxAgents {
		return false
	}
	l.agents[p] = true
	return true
}

func (l *Links) removeAgent(p *Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.agents, p)
}

var errNoToken = errors.New("the node did not prove that it knows the token")

// callNode is the agent's side of its handshake.
func (h *handshake) callNode(token []byte) (*Peer, error) {
	if err := h.say(h.hello()); err != nil {
		return nil, err
	}
	node, err := h.hear()
	if err != nil {
		return nil, err
	}
	if theirs, err := h.verdict(); err != nil {
		return nil, err
	} else if theirs != nil {
		return nil, theirs
	}
	if node.nonce == (nonce{}) {
		return nil, fmt.Errorf("node %s knows no agents: it is of an older version", node.Node)
	}
	version, err := agree(&h.self, node)
	if err != nil {
		return nil, err
	}
	own := h.prove(agentProof, token, &h.self, node.nonce)
	if err := h.say(appendFrame(nil, kindProof, len(own), own)); err != nil {
		return nil, err
	}
	shown, err := h.proof(kindAccept)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(shown, h.prove(nodeProof, token, &h.self, node.nonce)) {
		return nil, fmt.Errorf("node %s: %w", node.Node, errNoToken)
	}
	p := newPeer(h, node, version)
	p.in = h.in
	p.confirmed.Store(true)
	return p, nil
}
