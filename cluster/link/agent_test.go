package link

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
)

// agents lets the agent a0 in, by the token "right".
func agents(to *recorder) func(*Config, *node) {
	return func(c *Config, _ *node) {
		c.Agents = to
		c.Token = func(name string) ([]byte, bool) { return []byte("right"), name == "a0" }
	}
}

// call runs an agent until the test ends, or its link does.
func (h *hub) call(t *testing.T, addr string, change func(*CallConfig)) (r *recorder, ended chan error) {
	r, ended = new(recorder), make(chan error, 1)
	c := CallConfig{
		Addr: addr, Name: "a0", Token: []byte("right"), MinProtocol: 1, MaxProtocol: 1,
		Dial: h.dial, Receiver: r, Logger: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended <- Call(ctx, c)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r, ended
}

func TestAgentIsLinkedAndNoPeer(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		var fromAgents recorder
		n := h.start(t, "n0", agents(&fromAgents))
		r, _ := h.call(t, "n0", nil)
		settle(10 * time.Second) // heartbeats keep it
		if got := fromAgents.seen(); !strings.HasPrefix(got, "up a0 ") || strings.Contains(got, "down") {
			t.Errorf("of agents came: %s", got)
		}
		if n.seen() != "" {
			t.Errorf("the node has a peer: %s", n.seen())
		}
		r.peer(t).Send(Deltas, 7, []byte("from the agent"))
		fromAgents.peer(t).Send(Deltas, 8, []byte("from the node"))
		settle(time.Second)
		if got := fromAgents.got(); len(got) != 1 || got[0] != "7 from the agent" {
			t.Errorf("the node heard %q", got)
		}
		if got := r.got(); len(got) != 1 || got[0] != "8 from the node" {
			t.Errorf("the agent heard %q", got)
		}
	})
}

func TestAgentsThatProveNothingAreRefused(t *testing.T) {
	wrong := func(c *CallConfig) { c.Token = []byte("wrong") }
	unknown := func(c *CallConfig) { c.Name = "a1" }
	newer := func(c *CallConfig) { c.MinProtocol, c.MaxProtocol = 9, 9 }
	none := func(*Config, *node) {}
	for name, tc := range map[string]struct {
		call func(*CallConfig)
		node func(*recorder) func(*Config, *node)
		want string
	}{
		"wrong token":  {wrong, agents, "no agent of that name with that token"},
		"unknown name": {unknown, agents, "no agent of that name with that token"},
		"protocol":     {newer, agents, "no common protocol"},
		"no agents":    {nil, func(*recorder) func(*Config, *node) { return none }, "lets no agents in"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub) {
				var fromAgents recorder
				n := h.start(t, "n0", tc.node(&fromAgents))
				r, ended := h.call(t, "n0", tc.call)
				err := <-ended
				if err == nil || !strings.Contains(err.Error(), tc.want) || !Refused(err) {
					t.Errorf("ended with %v, want a refusal that says %q", err, tc.want)
				}
				if n.seen()+fromAgents.seen()+r.seen() != "" {
					t.Errorf("a link came up: %q %q %q", n.seen(), fromAgents.seen(), r.seen())
				}
			})
		})
	}
}

// fakeNode speaks as a node that lets agents in, and does not know the token.
func fakeNode(t *testing.T, c net.Conn) {
	p := newPuppet(t, c)
	p.expect(kindHello)
	self := hello("n0", 1)
	self.nonce = newNonce()
	p.write(kindHello, string(self.append(nil)))
	p.write(kindAccept, "")
	proof := p.expect(kindProof)
	p.write(kindAccept, proof) // the agent's own
}

func TestAgentStreamsToNoNodeThatDoesNotKnowTheToken(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		l := h.listen("n0")
		r, ended := h.call(t, "n0", nil)
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		fakeNode(t, c)
		if err := <-ended; !errors.Is(err, errNoToken) {
			t.Errorf("ended with %v", err)
		}
		wantEvents(t, r, "")
	})
}

func TestProofIsWorthNothingOnAnotherConnection(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		var fromAgents recorder
		h.start(t, "n0", agents(&fromAgents))
		self := hello("a0", 1)
		self.Role, self.nonce = AgentRole, newNonce()
		proof := ""
		for range 2 { // the second time with the proof of the first
			c, err := h.dial(context.Background(), "n0")
			if err != nil {
				t.Fatal(err)
			}
			p := newPuppet(t, c)
			p.write(kindHello, string(self.append(nil)))
			node, err := decodeHello([]byte(p.expect(kindHello)))
			if err != nil {
				t.Fatal(err)
			}
			p.expect(kindAccept)
			if proof == "" {
				made := &handshake{stream: c}
				proof = string(made.prove(agentProof, []byte("right"), &self, node.nonce))
				p.write(kindProof, proof)
				p.expect(kindAccept)
				continue
			}
			p.write(kindProof, proof)
			p.expect(kindRefuse)
		}
	})
}

func TestStoppingNodeEndsTheLinksOfAgents(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		var fromAgents recorder
		self := hello("n0", 1)
		c := Config{Self: func() Hello { return self }, Listener: h.listen("n0"), Handler: new(recorder)}
		agents(&fromAgents)(&c, nil)
		l, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		go func() { defer close(stopped); l.Run(ctx) }()
		_, ended := h.call(t, "n0", nil)
		settle(time.Second)
		cancel()
		<-stopped
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "n0 is stopping") {
			t.Errorf("the agent's link ended with %v", err)
		}
	})
}

func TestAgentProvesItselfUnderTLS(t *testing.T) {
	source := secretSource(t, oldSecret)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	self := hello("n0", 1)
	var fromAgents recorder
	c := Config{Self: func() Hello { return self }, Listener: ln, Handler: new(recorder), TLS: source}
	agents(&fromAgents)(&c, nil)
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	run(t, l)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	up := make(chan struct{})
	call := CallConfig{
		Addr: ln.Addr().String(), Name: "a0", Token: []byte("right"), MinProtocol: 1, MaxProtocol: 1, TLS: source,
		Receiver: onUp{new(recorder), func() { close(up) }},
	}
	ended := make(chan error, 1)
	go func() { ended <- Call(ctx, call) }()
	select {
	case <-up:
	case err := <-ended:
		t.Fatal(err)
	}
	cancel()
	<-ended
}

// onUp is a receiver that says when the link is up.
type onUp struct {
	*recorder
	up func()
}

func (r onUp) Up(p *Peer) { r.recorder.Up(p); r.up() }
