package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/vmihailenco/msgpack/v5"

	"kvca/cluster/link"
	"kvca/cluster/member"
	"kvca/cluster/wire"
)

// rogue is a node that links with others and says what it likes.
type rogue struct {
	mu    sync.Mutex
	links []*link.Peer
}

func (r *rogue) Check(*link.Hello) error        { return nil }
func (r *rogue) Frame(*link.Peer, byte, []byte) {}
func (r *rogue) Down(*link.Peer, error)         {}
func (r *rogue) Up(p *link.Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links = append(r.links, p)
}

func (r *rogue) to() []*link.Peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.links
}

// intrude starts a rogue that dials n.
func (w *world) intrude(n *testNode, hello link.Hello) (*rogue, func()) {
	host := w.net.Host("rogue")
	l, err := host.Listen(linkPort)
	if err != nil {
		w.t.Fatal(err)
	}
	r := &rogue{}
	links, err := link.New(link.Config{Self: func() link.Hello { return hello }, Listener: l, Dial: host.Dial, Handler: r})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		links.Run(ctx)
	}()
	links.SetPeers([]link.Target{{Name: n.name, Addr: fmt.Sprintf("%s:%d", n.host.IP(), linkPort)}})
	return r, func() { cancel(); <-done }
}

// lines is a log that tests read.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), part)
}

func valueOf(c prometheus.Counter) float64 {
	var m dto.Metric
	if c.Write(&m) != nil {
		return -1
	}
	return m.GetCounter().GetValue()
}

func TestAPeerThatSpeaksGarbageIsHarmless(t *testing.T) {
	inBubble(t, 20, func(w *world) {
		log := &lines{}
		w.log = slog.New(slog.NewTextHandler(log, nil))
		w.start(3, 4, nil)
		w.eventually("together", 5*time.Second, w.together)
		turn := path(1, 20)
		w.nodes[0].learn(1, turn)
		hello := w.nodes[0].c.hello()
		hello.Node, hello.Boot = "a-rogue", 99 // the lower name dials
		r, end := w.intrude(w.nodes[0], hello)
		defer end()
		w.eventually("linked", 3*time.Second, func() string {
			if len(r.to()) == 0 {
				return "no link"
			}
			return ""
		})
		rng := rand.New(rand.NewPCG(1, 1))
		for range 3000 {
			body := make([]byte, rng.IntN(300))
			for i := range body {
				body[i] = byte(rng.Uint32())
			}
			for _, p := range r.to() {
				p.Send(link.Lane(rng.IntN(3)), byte(rng.IntN(30)), body)
			}
			if rng.IntN(50) == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(2 * time.Second)
		c := w.nodes[0].c
		if valueOf(c.metrics.malformed.WithLabelValues("malformed")) == 0 || valueOf(c.metrics.malformed.WithLabelValues("unknown_kind")) == 0 {
			t.Error("garbage was not counted")
		}
		if n := log.count("can't be read"); n != 1 {
			t.Errorf("garbage was logged %d times, want once", n)
		}
		if n := log.count("level=ERROR"); n != 0 {
			t.Errorf("%d errors logged", n)
		}
		w.nodes[1].learn(2, turn)
		time.Sleep(100 * time.Millisecond)
		for _, n := range w.nodes {
			if n.matched(1, turn) != 20 || n.matched(2, turn) != 20 {
				t.Errorf("%s matches %d and %d of 20 blocks", n.name, n.matched(1, turn), n.matched(2, turn))
			}
			n.reserve(4, -1)
			n.release(0)
		}
	})
}

// A backend that no node could have is not taken from a peer either; what else it says is.
func TestBackendsOfPeersWithIDsThatAreNoneAreDropped(t *testing.T) {
	inBubble(t, 26, func(w *world) {
		log := &lines{}
		w.log = slog.New(slog.NewTextHandler(log, nil))
		w.start(1, 2, func(c *Config) { c.LearnBackends = true })
		n := w.nodes[0]
		hello := n.c.hello()
		hello.Node, hello.Boot = "a-rogue", 99
		r, end := w.intrude(n, hello)
		defer end()
		w.eventually("linked", 3*time.Second, func() string {
			if len(r.to()) == 0 {
				return "no link"
			}
			return ""
		})
		odd := []string{"*", "a b", "a/b", "gpu\u202e1", "a\x1b[2J", "", "..", strings.Repeat("x", 129)}
		list := []Backend{{ID: "good", URL: "http://good:1"}}
		var facts []byte
		for _, id := range odd {
			list = append(list, Backend{ID: id, URL: "http://odd:1"})
			one := msgpackFact(t, byte(member.Fleet), id, 1, `{"id":`+strconv.Quote(id)+`,"url":"http://odd:1"}`)
			facts = wire.AppendBytes(facts, one)
		}
		facts = wire.AppendBytes(facts, msgpackFact(t, byte(member.Drain), "b1", 1, ""))
		roster, err := json.Marshal(rosterFrame{First: true, Last: true, Backends: list})
		if err != nil {
			t.Fatal(err)
		}
		r.to()[0].Send(link.Deltas, wire.Roster, roster)
		r.to()[0].Send(link.Deltas, wire.Facts, facts)
		w.have(t, "b0", "b1", "good")
		w.eventually("what else it says is followed", 3*time.Second, func() string {
			n.fleet.mu.Lock()
			defer n.fleet.mu.Unlock()
			if !n.fleet.drained["b1"] {
				return "b1 is not drained"
			}
			return ""
		})
		time.Sleep(time.Second)
		w.have(t, "b0", "b1", "good")
		if got := valueOf(n.c.metrics.malformed.WithLabelValues("malformed")); got != 2 {
			t.Errorf("%v frames are counted, want the roster and the facts", got)
		}
		if got := len(n.c.facts.changes()); got != 0 {
			t.Errorf("%d changes of operators are kept that are none", got)
		}
		if said := log.count("can't be read"); said != 1 {
			t.Errorf("said %d times, want once", said)
		}
	})
}

// msgpackFact is a fact as an older node, or none of ours, writes it.
func msgpackFact(t *testing.T, kind byte, subject string, value uint64, text string) []byte {
	t.Helper()
	b, err := msgpack.Marshal([]any{kind, subject, uint64(1), value, "a-rogue", text})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a peer claims stays within bounds and goes with it.
func TestAPeersClaimsGoWithIt(t *testing.T) {
	inBubble(t, 21, func(w *world) {
		w.start(2, 4, nil)
		w.eventually("together", 5*time.Second, w.together)
		hello := w.nodes[0].c.hello()
		hello.Node, hello.Boot = "a-rogue", 99
		r, end := w.intrude(w.nodes[0], hello)
		w.eventually("linked", 3*time.Second, func() string {
			if len(r.to()) == 0 {
				return "no link"
			}
			return ""
		})
		e := w.nodes[0].c.backends.at(w.nodes[0].fleet.slot("b1"))
		claim := wire.AppendFigure(wire.AppendSubtotals(nil, false, 1), &wire.Figure{Key: e.key})
		claim = claim[:len(claim)-2]
		claim = append(claim, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 9) // novel: nearly 2^63
		r.to()[0].Send(link.Urgent, wire.Subtotals, claim)
		hold := wire.Hold{Key: e.key, Novel: 1 << 62}
		for i := range uint64(5000) {
			hold.ID = [2]uint64{i, 1}
			r.to()[0].Send(link.Urgent, wire.Changes, wire.AppendChange(nil, wire.OpHeld, &hold))
		}
		time.Sleep(time.Second)
		if got := w.nodes[0].loads.Load(e.slot); got.Novel < 0 || got.Active < 0 {
			t.Errorf("a claim made the load %+v", got)
		}
		end()
		w.eventually("its claims are gone", 3*time.Second, func() string { return w.loadsAgree(4) })
	})
}

func TestWhoDisagreesIsRefused(t *testing.T) {
	inBubble(t, 22, func(w *world) {
		log := &lines{}
		w.log = slog.New(slog.NewTextHandler(log, nil))
		w.start(1, 1, nil)
		own := handler{w.nodes[0].c}
		same := w.nodes[0].c.hello()
		same.Node = "other"
		if err := own.Check(&same); err != nil {
			t.Error(err)
		}
		for _, c := range []struct {
			edit func(*link.Hello)
			want []string
		}{
			{func(h *link.Hello) { h.Cluster = "theirs" }, []string{`"test"`, `"theirs"`}},
			{func(h *link.Hello) { h.BlockSize = 1024 }, []string{"512", "1024"}},
			{func(h *link.Hello) { h.KeyCheck = 7 }, []string{"0000000000000007", fmt.Sprintf("%016x", same.KeyCheck)}},
			{func(h *link.Hello) { h.Node = "n0" }, []string{`"n0"`}},
		} {
			h := same
			c.edit(&h)
			err := own.Check(&h)
			for _, part := range c.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%+v: the error %v does not name %s", h, err, part)
				}
			}
		}
		r, end := w.intrude(w.nodes[0], link.Hello{Cluster: "test", Node: "a-old", Boot: 1, MinProtocol: 0, MaxProtocol: 0, BlockSize: 512, KeyCheck: same.KeyCheck})
		time.Sleep(30 * time.Second)
		end()
		if len(r.to()) != 0 {
			t.Error("a node of an old version was linked with")
		}
		if n := log.count("no common protocol"); n != 1 {
			t.Errorf("the refusal was logged %d times, want once", n)
		}
	})
}

func TestMixedBlockSizesShareLoadsOnly(t *testing.T) {
	inBubble(t, 23, func(w *world) {
		w.start(1, 3, func(c *Config) { c.MixedBlockSizes = true })
		n := &testNode{w: w, name: "n1", host: w.net.Host("n1"), edit: func(c *Config) { c.MixedBlockSizes, c.BlockSize = true, 1024 }}
		w.nodes = append(w.nodes, n)
		n.run(3)
		w.eventually("together", 10*time.Second, w.together)
		w.nodes[0].learn(0, path(1, 10))
		w.nodes[0].reserve(3, 0)
		w.eventually("loads agree", time.Second, func() string { return w.loadsAgree(3) })
		time.Sleep(20 * time.Second)
		if got := n.matched(0, path(1, 10)); got != 0 {
			t.Errorf("%d blocks of another size are believed in", got)
		}
		if s := n.c.Status(); s.Members[1].Differs == "" {
			t.Error("status does not say what differs")
		}
	})
}

// A node with a full inbox drops, notices, and catches up.
func TestWhatIsDroppedIsFetched(t *testing.T) {
	inBubble(t, 24, func(w *world) {
		w.start(2, 2, nil)
		w.eventually("together", 5*time.Second, w.together)
		n0, n1 := w.nodes[0], w.nodes[1]
		p := n1.c.peers.get("n0")
		p.inbox.mu.Lock()
		p.inbox.bound, p.inbox.busy = 10, true // nothing fits
		p.inbox.mu.Unlock()
		for i := range 50 {
			n0.learn(i%2, path(uint64(i), 30))
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		if n1.matched(0, path(0, 30)) != 0 || valueOf(n1.c.metrics.dropped) == 0 {
			t.Fatal("the inbox has taken what it has no room for")
		}
		p.inbox.mu.Lock()
		p.inbox.bound, p.inbox.busy = inboxBytes, false
		p.inbox.mu.Unlock()
		took := w.eventually("maps equal", 15*time.Second, w.sameMaps)
		t.Logf("caught up after %v", took)
	})
}

// A link that takes no more makes the peer dirty, which it notices by the gap.
func TestADirtyPeerComparesAndIsClean(t *testing.T) {
	inBubble(t, 25, func(w *world) {
		w.start(2, 2, nil)
		w.eventually("together", 5*time.Second, w.together)
		n0, n1 := w.nodes[0], w.nodes[1]
		n1.host.Pause()
		for i := range 1000 {
			n0.learn(i%2, path(uint64(i), 120))
			if i%100 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
		n1.host.Resume()
		w.eventually("together", 20*time.Second, w.together)
		w.eventually("maps equal", 20*time.Second, w.sameMaps)
		w.eventually("clean", 10*time.Second, func() string {
			for _, n := range w.nodes {
				for _, m := range n.c.Status().Members {
					if m.Dirty {
						return m.Name + " is dirty"
					}
				}
			}
			return ""
		})
	})
}
