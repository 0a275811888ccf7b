package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kvca/cluster/link"
	"kvca/cluster/simnet"
	"kvca/cluster/wire"
	"kvca/state/kvindex"
	"kvca/state/ring"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a node as agents see it: it says what the test has it say, and keeps what
// it hears.
type host struct {
	t     *testing.T
	acks  bool
	wants bool

	mu     sync.Mutex
	peer   *link.Peer
	links  int
	offers []wire.SourceOffer
	node   *node
	bytes  int // not acknowledged
	most   int
}

func (h *host) Check(*link.Hello) error { return errors.New("no peers here") }

func (h *host) Up(p *link.Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peer, h.bytes, h.node = p, 0, &node{source: newSource(h.t)}
	h.links++
}

func (h *host) Down(*link.Peer, error) {}

func (h *host) Frame(p *link.Peer, kind byte, body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := wire.NewReader(body)
	switch kind {
	case wire.AgentOffer:
		_, o := r.AgentOffer()
		if h.offers = append(h.offers, o); h.wants && len(h.offers) == 1 {
			p.Send(link.Deltas, wire.KVWant, wire.AppendWant(nil, o.ID, true))
		}
	case wire.AgentPart:
		part := r.Part()
		h.bytes += len(body)
		h.most = max(h.most, h.bytes)
		h.node.apply(h.t, part, body[len(body)-r.Rest():])
		if h.acks {
			p.Send(link.Deltas, wire.KVAck, wire.AppendKVAck(nil, part.ID, part.Epoch, part.Seq))
			h.bytes = 0
		}
	}
}

func (h *host) holds() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.node == nil {
		return 0
	}
	return len(holdings(h.node.source))
}

// meet runs a node and an agent of two backends in virtual time.
func meet(t *testing.T, h *host, f func(a *Agent)) {
	virtualtime.Test(t, func(t *testing.T) {
		h.t = t
		net := simnet.New(1)
		defer net.Close()
		net.SetStreams(time.Millisecond, 0)
		at := net.Host("n0")
		l, err := at.Listen(7)
		if err != nil {
			t.Fatal(err)
		}
		links, err := link.New(link.Config{
			Self:     func() link.Hello { return link.Hello{Node: "n0", Boot: 1, MinProtocol: 1, MaxProtocol: 1} },
			Listener: l, Handler: h, Agents: h,
			Token: func(name string) ([]byte, bool) { return []byte(token), name == "a" },
		})
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Config{
			Nodes: []string{fmt.Sprintf("%s:7", at.IP())}, Name: "a", Token: []byte(token),
			Backends: []Backend{{ID: "b"}}, Dial: net.Host("a").Dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { links.Run(ctx) })
		work.Go(func() {
			if err := a.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the agent ends with %v", err)
			}
		})
		f(a)
		cancel()
		work.Wait()
	})
}

func sinkOf(t *testing.T, a *Agent) *Mirror {
	m, err := a.Sink("b", 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestNodeIsToldWhatItWantsAndNoMore(t *testing.T) {
	h := &host{acks: true}
	meet(t, h, func(a *Agent) {
		m := sinkOf(t, a)
		m.Store(chainOf(100))
		after(time.Second)
		if h.holds() != 0 || len(h.offers) != 1 || a.Status().Mirrors[0].Told {
			t.Fatalf("%d blocks are told unasked, %d offers", h.holds(), len(h.offers))
		}
		want := func(on bool) {
			h.peer.Send(link.Deltas, wire.KVWant, wire.AppendWant(nil, m.id, on))
			after(100 * time.Millisecond)
		}
		if want(true); h.holds() != 100 {
			t.Errorf("%d blocks are told, want all", h.holds())
		}
		m.Remove([]uint64{100}, kvindex.GPU)
		m.SetLive(true)
		if after(100 * time.Millisecond); h.holds() != 99 || !h.offers[len(h.offers)-1].Live {
			t.Errorf("%d blocks, offers %+v", h.holds(), h.offers)
		}
		want(false)
		m.Reset()
		if after(time.Second); h.holds() != 99 {
			t.Error("it is told what it does not want any more")
		}
		if want(true); h.holds() != 0 {
			t.Error("a new stream does not begin with nothing")
		}
		want(true)
		h.peer.Send(link.Deltas, wire.KVWant, wire.AppendWant(nil, wire.SourceID{Key: ring.Key("other")}, true)) // not its own
		after(time.Second)
		if s := a.Status(); s.Node != "n0" || s.Problem != "" || !s.Mirrors[0].Told || h.links != 1 {
			t.Errorf("%+v over %d links", s, h.links)
		}
	})
}

func TestLittleIsUnderWay(t *testing.T) {
	h := &host{wants: true}
	meet(t, h, func(a *Agent) {
		sinkOf(t, a).Store(chainOf(50_000))
		after(5 * time.Second)
		if h.most < window/2 || h.most > window+128<<10 {
			t.Errorf("%d bytes are under way, want about %d", h.most, window)
		}
		after(ackTimeout)
		if h.links != 2 {
			t.Errorf("%d links: one whose node acknowledges nothing is to be given up", h.links)
		}
		if !strings.Contains(a.Status().Problem, "acknowledges nothing") && a.Status().Node == "" {
			t.Errorf("%+v", a.Status())
		}
	})
}

func TestLostLinkIsMadeAgainAndToldAll(t *testing.T) {
	h := &host{wants: true, acks: true}
	meet(t, h, func(a *Agent) {
		m := sinkOf(t, a)
		m.Store(chainOf(1000))
		after(time.Second)
		h.mu.Lock()
		h.offers = nil
		h.mu.Unlock()
		h.peer.Close(errors.New("by and by"))
		m.Remove(chainOf(10).Hashes, kvindex.GPU)
		if after(3 * time.Second); h.holds() != 990 || h.links != 2 {
			t.Errorf("%d blocks over %d links", h.holds(), h.links)
		}
	})
}
