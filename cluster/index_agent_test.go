package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvca/cluster/agent"
	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/kvindex"
	"kvca/state/ring"
)

const testToken = "0123456789abcdef"

// yard is a cluster of nodes with a precise index, and agents beside it.
type yard struct {
	*world
	credentials atomic.Pointer[agent.Credentials]
}

func newYard(w *world, nodes int, credentials string) *yard {
	y := &yard{world: w}
	y.admit(credentials)
	w.start(nodes, 3, func(c *Config) {
		c.Index = testIndex()
		c.Agents = func() agent.Credentials { return *y.credentials.Load() }
	})
	w.eventually("together", 20*time.Second, w.together)
	return y
}

func (y *yard) admit(lines string) {
	c, err := agent.ReadCredentials(strings.NewReader(lines))
	if err != nil {
		y.t.Fatal(err)
	}
	y.credentials.Store(&c)
}

// runAgent is an agent with its engine, on a host of its own.
type runAgent struct {
	*agent.Agent
	truth
	host string
	sink *agent.Mirror
	stop func()
}

// agent runs an agent of that credential that describes backend, and calls the nodes
// given.
func (y *yard) agent(name, host, backend string, to ...*testNode) *runAgent {
	h := y.net.Host(host)
	cfg := agent.Config{
		Name: name, Token: []byte(testToken), Backends: []agent.Backend{{ID: backend}},
		Dial: h.Dial, Logger: slog.New(slog.DiscardHandler),
	}
	for _, n := range to {
		cfg.Nodes = append(cfg.Nodes, fmt.Sprintf("%s:%d", n.host.IP(), linkPort))
	}
	a, err := agent.New(cfg)
	if err != nil {
		y.t.Fatal(err)
	}
	r := &runAgent{Agent: a, truth: truth{backend: backend, runs: make(map[uint64]*kvindex.Stored)}, host: host}
	if r.sink, err = a.Sink(backend, 0); err != nil {
		y.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	stopped := false
	r.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
		}
	}
	return r
}

// store has the engine hold some more runs of blocks.
func (r *runAgent) store(rng *rand.Rand, runs, blocks int) {
	for range runs {
		s := run(rng, blocks)
		r.runs[s.Hashes[0]] = s
		r.sink.Store(s)
	}
	r.sink.SetLive(true)
}

// known is empty when all nodes know what the engine holds.
func (y *yard) known(e *truth, read bool) func() string {
	return func() string {
		for _, n := range y.living() {
			if why := e.agrees(n.c, read); why != "" {
				return why
			}
		}
		return ""
	}
}

func (y *yard) via(n *testNode, backend string) (s SourceStatus) {
	for _, s := range n.c.Status().Sources {
		if s.Backend == backend {
			return s
		}
	}
	return SourceStatus{}
}

func TestAgentsBlocksAreKnownEverywhereAndForgottenWithItsStream(t *testing.T) {
	inBubble(t, 1, func(w *world) {
		y := newYard(w, 3, "rack "+testToken+" b0,b1")
		a := y.agent("rack", "engine0", "b1", w.nodes...)
		defer a.stop()
		a.store(w.rng, 200, 20)
		w.eventually("full copy", 5*time.Second, y.known(&a.truth, true))
		a.sink.Reset()
		clear(a.runs)
		a.store(w.rng, 5, 3)
		for _, s := range a.runs {
			a.sink.Remove(s.Hashes[1:], s.Tier)
			s.Hashes, s.Tokens = s.Hashes[:1], s.Tokens[:4]
		}
		w.eventually("net changes", time.Second, y.known(&a.truth, true))
		ways := map[string]int{}
		for _, n := range w.nodes {
			s := y.via(n, "b1")
			if ways[s.Via]++; !s.Live || !s.Whole || s.Blocks != 5 || s.BlockSize != 4 {
				t.Errorf("%s has %+v", n.name, s)
			}
			if members := n.c.Status().Members; len(members) != 3 {
				t.Errorf("%s counts %d members: an agent is none", n.name, len(members))
			}
		}
		if ways[ViaAgent] != 1 || ways[ViaPeer] != 2 {
			t.Errorf("the nodes have it by %v, want one from the agent", ways)
		}
		a.sink.SetProblem("the engine's socket is down")
		a.sink.SetLive(false)
		w.eventually("not live", time.Second, y.known(&a.truth, false))
		for _, n := range w.nodes {
			if got := y.via(n, "b1").Problem; got != "the engine's socket is down" {
				t.Errorf("%s: the problem is %q", n.name, got)
			}
		}
		a.sink.SetLive(true)
		w.eventually("live", time.Second, y.known(&a.truth, true))
		a.stop()
		w.eventually("forgotten", time.Second, y.known(&a.truth, false))
		for _, n := range w.nodes {
			if s := y.via(n, "b1"); s.Backend != "" {
				t.Errorf("%s still has %+v", n.name, s)
			}
		}
	})
}

func TestSilentAgentIsForgotten(t *testing.T) {
	inBubble(t, 2, func(w *world) {
		y := newYard(w, 2, "rack "+testToken+" b0")
		a := y.agent("rack", "engine0", "b0", w.nodes...)
		defer a.stop()
		a.store(w.rng, 10, 10)
		w.eventually("full copy", 5*time.Second, y.known(&a.truth, true))
		y.net.Host(a.host).Pause()
		w.eventually("forgotten", lease+time.Second, y.known(&a.truth, false))
		y.net.Host(a.host).Resume()
		w.eventually("back", 10*time.Second, y.known(&a.truth, true))
	})
}

func TestCopyThatIsCutBeginsAnew(t *testing.T) {
	inBubble(t, 3, func(w *world) {
		w.net.SetStreams(5*time.Millisecond, time.Millisecond)
		y := newYard(w, 2, "rack "+testToken+" b0")
		a := y.agent("rack", "engine0", "b0", w.nodes...)
		defer a.stop()
		a.store(w.rng, 400, 100)
		for range 8 {
			time.Sleep(time.Duration(w.rng.Int64N(int64(150 * time.Millisecond))))
			a.change(w.rng, 50, nil)
			w.net.CutStreams(a.host, w.nodes[0].name)
			w.net.CutStreams(a.host, w.nodes[1].name)
			w.net.CutStreams(w.nodes[0].name, w.nodes[1].name)
		}
		// What change did is not known to the agent: begin anew, as a feed would.
		a.sink.Reset()
		for _, s := range a.runs {
			a.sink.Store(s)
		}
		w.eventually("full copy", 20*time.Second, y.known(&a.truth, true))
	})
}

func TestAgentWithoutTheTokenIsNotHeard(t *testing.T) {
	inBubble(t, 4, func(w *world) {
		y := newYard(w, 1, "rack another-token-of-it b0")
		a := y.agent("rack", "engine0", "b0", w.nodes...)
		defer a.stop()
		a.store(w.rng, 3, 3)
		time.Sleep(10 * time.Second)
		if why := y.known(&a.truth, false)(); why != "" || a.Status().Node != "" {
			t.Errorf("%s, streams to %q", why, a.Status().Node)
		}
		if !strings.Contains(a.Status().Problem, "no agent of that name with that token") {
			t.Errorf("the agent says %q", a.Status().Problem)
		}
		y.admit("rack " + testToken + " b0")
		w.eventually("let in", 10*time.Second, y.known(&a.truth, true))
		y.admit("other " + testToken + " b0")
		w.eventually("sent away", time.Second, y.known(&a.truth, false))
	})
}

func TestAgentDescribesOnlyWhatItsCredentialLists(t *testing.T) {
	inBubble(t, 5, func(w *world) {
		y := newYard(w, 2, "rack "+testToken+" b0")
		a := y.agent("rack", "engine0", "b1", w.nodes[0])
		defer a.stop()
		a.store(w.rng, 3, 3)
		time.Sleep(5 * time.Second)
		if why := y.known(&a.truth, false)(); why != "" {
			t.Error(why)
		}
		n := w.nodes[0].c
		if got := valueOf(n.metrics.index.dropped.WithLabelValues(dropNotRegistered)); got == 0 {
			t.Error("nothing is counted")
		}
		y.admit("rack " + testToken + " b0,b1")
		w.eventually("listed", 5*time.Second, y.known(&a.truth, true))
		y.admit("rack " + testToken + " b0")
		w.eventually("not listed any more", time.Second, y.known(&a.truth, false))
		y.admit("rack " + testToken + " b0,b1")
		w.eventually("listed again", 5*time.Second, y.known(&a.truth, true))
	})
}

func TestAgentGoesToAnotherNode(t *testing.T) {
	inBubble(t, 6, func(w *world) {
		y := newYard(w, 3, "rack "+testToken+" b0")
		a := y.agent("rack", "engine0", "b0", w.nodes...)
		defer a.stop()
		a.store(w.rng, 50, 10)
		w.eventually("full copy", 5*time.Second, y.known(&a.truth, true))
		for _, n := range w.nodes {
			if n.name == a.Status().Node {
				n.kill()
			}
		}
		a.store(w.rng, 1, 10)
		w.eventually("known to those who live", 10*time.Second, y.known(&a.truth, true))
	})
}

func TestNewerAgentTakesThePlaceOfAnOlder(t *testing.T) {
	inBubble(t, 7, func(w *world) {
		y := newYard(w, 2, "rack "+testToken+" b0\nother "+testToken+" b0")
		older := y.agent("rack", "engine0", "b0", w.nodes[0])
		defer older.stop()
		older.store(w.rng, 5, 5)
		w.eventually("the older", 5*time.Second, y.known(&older.truth, true))
		newer := y.agent("other", "engine1", "b0", w.nodes[0])
		newer.store(w.rng, 4, 4)
		w.eventually("the newer", 5*time.Second, y.known(&newer.truth, true))
		if s := y.via(w.nodes[0], "b0"); s.Teller != "other" || s.Via != ViaAgent {
			t.Errorf("it comes from %s %q", s.Via, s.Teller)
		}
		newer.stop()
		w.eventually("the older again", 5*time.Second, y.known(&older.truth, true))
	})
}

func TestOwnFeedComesBeforeAgents(t *testing.T) {
	inBubble(t, 8, func(w *world) {
		y := newYard(w, 2, "rack "+testToken+" b0")
		a := y.agent("rack", "engine0", "b0", w.nodes[0])
		defer a.stop()
		a.store(w.rng, 5, 5)
		w.eventually("the agent", 5*time.Second, y.known(&a.truth, true))
		own := &truth{backend: "b0", runs: make(map[uint64]*kvindex.Stored)}
		f, err := w.nodes[0].c.Feed("b0", 0, "m")
		if err != nil {
			t.Fatal(err)
		}
		s := run(w.rng, 7)
		own.runs[s.Hashes[0]] = s
		own.fill(f)
		if _, err := w.nodes[0].c.Feed("b0", 0, "m"); err == nil {
			t.Error("a second feed of one source is opened")
		}
		if _, err := w.nodes[0].c.Feed("nobody", 0, "m"); err == nil {
			t.Error("a feed of an unknown backend is opened")
		}
		w.eventually("the feed", 5*time.Second, y.known(own, true))
		f.Close()
		w.eventually("the agent again", 5*time.Second, y.known(&a.truth, true))
	})
}

// rogueAgent sends what it likes once it is let in.
type rogueAgent struct {
	send func(p *link.Peer)
	down chan struct{}
}

func (r *rogueAgent) Up(p *link.Peer)                { r.send(p) }
func (r *rogueAgent) Frame(*link.Peer, byte, []byte) {}
func (r *rogueAgent) Down(*link.Peer, error)         { close(r.down) }
func offerOf(backend string, id wire.SourceID) []byte {
	return wire.AppendAgentOffer(nil, backend, &wire.SourceOffer{ID: id, Live: true})
}

func TestGarbageOfAnAgentHarmsNobody(t *testing.T) {
	inBubble(t, 9, func(w *world) {
		y := newYard(w, 1, "rack "+testToken+" b0\nother "+testToken+" b1")
		good := y.agent("other", "engine1", "b1", w.nodes[0])
		defer good.stop()
		good.store(w.rng, 5, 5)
		id := wire.SourceID{Key: ring.Key("b0")}
		r := &rogueAgent{down: make(chan struct{}), send: func(p *link.Peer) {
			for range 300 {
				junk := make([]byte, w.rng.IntN(200))
				for i := range junk {
					junk[i] = byte(w.rng.Uint32())
				}
				p.Send(link.Deltas, byte(w.rng.IntN(30)), junk)
			}
			p.Send(link.Deltas, wire.AgentOffer, offerOf("b0", id))
			p.Send(link.Deltas, wire.AgentOffer, offerOf("b0", wire.SourceID{Key: ring.Key("b1")})) // not its backend
			p.Send(link.Deltas, wire.AgentPart, wire.AppendPart(nil, &wire.Part{ID: wire.SourceID{Key: ring.Key("b1")}, Begin: true, Reset: true}))
			for i := range uint64(300) {
				b := wire.AppendPart(nil, &wire.Part{ID: id, Epoch: i / 100, Seq: i % 100, Begin: i%100 == 0})
				p.Send(link.Deltas, wire.AgentPart, append(b, byte(w.rng.Uint32()), byte(i), 0xff, 0xff, 0xff, 0xff, 0x0f))
			}
		}}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		err := link.Call(ctx, link.CallConfig{
			Addr: fmt.Sprintf("%s:%d", w.nodes[0].host.IP(), linkPort), Name: "rack", Token: []byte(testToken),
			MinProtocol: 1, MaxProtocol: 1, Dial: w.net.Host("engine0").Dial, Receiver: r,
		})
		<-r.down
		t.Log(err)
		w.eventually("the other agent", 5*time.Second, y.known(&good.truth, true))
		none := &truth{backend: "b0"}
		w.eventually("the rogue is forgotten", time.Second, y.known(none, false))
		if got := valueOf(w.nodes[0].c.metrics.index.dropped.WithLabelValues(dropMalformed)); got == 0 {
			t.Error("no malformed frame is counted")
		}
	})
}
