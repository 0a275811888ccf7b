package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/kvindex"
	"kvca/state/ring"
)

// pair is two linked nodes, the first of which reads b0.
func pair(t *testing.T) (f *field, e *truth, feed *Feed) {
	f = newField(t, 1, 2, 2)
	e = &truth{backend: "b0", runs: make(map[uint64]*kvindex.Stored)}
	feed, err := f.nodes[0].Feed("b0", 0, "m")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s := run(f.rng, 30)
		e.runs[s.Hashes[0]] = s
	}
	e.fill(feed)
	f.pass(time.Second, 1000)
	if why := e.agrees(f.nodes[1].Cluster, true); why != "" {
		t.Fatal(why)
	}
	return f, e, feed
}

func TestGoodbyeOfASourceIsSaidUntilItIsTaken(t *testing.T) {
	f, e, feed := pair(t)
	f.refuse = func(kind byte, _ []byte) bool { return kind == wire.KVOffer }
	feed.Close()
	f.pass(time.Second, 1000)
	f.refuse = nil
	f.pass(time.Second, 1000)
	if why := e.agrees(f.nodes[1].Cluster, false); why != "" {
		t.Error(why)
	}
}

func TestACopyThatIsDroppedAsAWholeIsAskedForAgain(t *testing.T) {
	f, e, feed := pair(t)
	n := f.nodes[1]
	n.inboxes(100) // no part fits, of changes or of the copy that is asked for then
	for range 3 {
		s := run(f.rng, 50)
		e.runs[s.Hashes[0]] = s
		feed.Store(s)
		f.pass(time.Second, 1000)
	}
	n.inboxes(sourceInbox)
	f.pass(2*wantAgain, 1000)
	if why := e.agrees(n.Cluster, true); why != "" {
		t.Error(why)
	}
}

func TestOldNodesAreToldOffersAndNothingElse(t *testing.T) {
	f := newField(t, 1, 2, 1)
	sent := make(map[byte]int)
	f.refuse = func(kind byte, _ []byte) bool { sent[kind]++; return false }
	f.nodes[1].index = nil // as one that knows no precise index
	feed, err := f.nodes[0].Feed("b0", 0, "m")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		feed.Store(run(f.rng, 100))
	}
	f.pass(2*time.Second, 1000)
	if sent[wire.KVOffer] != 1 || sent[wire.KVPart] != 0 || sent[wire.KVWant] != 0 {
		t.Errorf("sent, by kind: %v", sent)
	}
	if n := len(feed.batch); n != 0 {
		t.Errorf("%d bytes gather for nobody", n)
	}
}

func TestBurstBeyondTheBoundCostsOneCopy(t *testing.T) {
	f, e, feed := pair(t)
	longest := 0
	f.refuse = func(kind byte, body []byte) bool {
		if kind == wire.KVPart {
			longest = max(longest, len(body))
		}
		return false
	}
	for range 40 {
		s := run(f.rng, 1000)
		e.runs[s.Hashes[0]] = s
		feed.Store(s)
	}
	if len(feed.batch) > sourceBytes || !feed.lost {
		t.Fatalf("%d bytes gather, lost %v", len(feed.batch), feed.lost)
	}
	f.pass(5*time.Second, 1000)
	if why := e.agrees(f.nodes[1].Cluster, true); why != "" {
		t.Error(why)
	}
	if got := valueOf(f.nodes[0].metrics.index.copies.overflow); got != 1 {
		t.Errorf("%v copies for an overflow, want 1", got)
	}
	for range 10 {
		s := run(f.rng, 1000)
		e.runs[s.Hashes[0]] = s
		feed.Store(s)
	}
	f.pass(time.Second, 1000)
	if why := e.agrees(f.nodes[1].Cluster, true); why != "" {
		t.Error(why)
	}
	if longest > 16<<10 {
		t.Errorf("a part of %d bytes is sent: what is urgent waits for it", longest)
	}
}

func TestTellerThatDisappearsIsReplacedByTheNext(t *testing.T) {
	f := newField(t, 1, 3, 1)
	e := &truth{backend: "b0", runs: make(map[uint64]*kvindex.Stored)}
	s := run(f.rng, 10)
	e.runs[s.Hashes[0]] = s
	var feeds []*Feed
	for _, n := range f.nodes[:2] {
		feed, err := n.Feed("b0", 0, "m")
		if err != nil {
			t.Fatal(err)
		}
		e.fill(feed)
		feeds = append(feeds, feed)
	}
	teller := func(want string) {
		t.Helper()
		f.pass(time.Second, 1000)
		if why := e.agrees(f.nodes[2].Cluster, true); why != "" {
			t.Error(why)
		}
		if got := f.nodes[2].index.status()[0].Teller; got != want {
			t.Errorf("told by %s, want %s", got, want)
		}
	}
	teller("n0")
	feeds[0].SetLive(false)
	teller("n1")
	feeds[0].SetLive(true)
	teller("n0")
	f.cut(f.nodes[0], f.nodes[2])
	teller("n1")
	f.link()
	teller("n0")
	feeds[0].Close()
	teller("n1")
}

func TestNodeWhoseOwnFeedIsDownIsToldByAPeer(t *testing.T) {
	f, e, _ := pair(t)
	own, err := f.nodes[1].Feed("b0", 0, "m") // never live
	if err != nil {
		t.Fatal(err)
	}
	own.SetProblem("no connection")
	f.pass(100*time.Millisecond, 1000)
	if why := e.agrees(f.nodes[1].Cluster, true); why != "" {
		t.Errorf("while the feed connects: %s", why)
	}
	own.SetLive(true)
	f.pass(100*time.Millisecond, 1000)
	own.SetLive(false)
	f.pass(ownGrace+time.Second, 1000)
	if why := e.agrees(f.nodes[1].Cluster, true); why != "" {
		t.Error(why)
	}
	own.SetLive(true)
	f.pass(time.Second, 1000)
	list := f.nodes[1].index.status()
	if len(list) != 1 || list[0].Via != ViaFeed || list[0].Problem != "no connection" {
		t.Errorf("%+v", list)
	}
}

func TestOffersWithoutEndAreBounded(t *testing.T) {
	f, _, _ := pair(t)
	n := f.nodes[1]
	for i := range uint64(2 * maxPeerOffers) {
		n.Deliver("n0", wire.KVOffer, wire.AppendSourceOffer(nil, &wire.SourceOffer{ID: wire.SourceID{Key: i}, Live: true}))
		n.Deliver("n0", wire.KVWant, wire.AppendWant(nil, wire.SourceID{Key: i}, true))
	}
	if got := len(n.index.places); got > maxPeerOffers {
		t.Errorf("%d sources are remembered", got)
	}
	f.cut(f.nodes[0], n)
	if got := len(n.index.places); got != 0 {
		t.Errorf("%d sources are remembered of a peer that is gone", got)
	}
}

// What a peer sends, whatever it is, does no more than spoil what is known through
// it, and that not for long.
func FuzzSourcesOfAPeer(f *testing.F) {
	id := wire.SourceID{Key: ring.Key("b0")}
	f.Add(wire.KVPart, wire.AppendHeld(wire.AppendPart(nil, &wire.Part{ID: id, Epoch: 1 << 40, Seq: 1, Begin: true, BlockSize: 4}), &kvindex.Held{Key: 1, Tiers: 1}))
	f.Add(wire.KVOffer, wire.AppendSourceOffer(nil, &wire.SourceOffer{ID: id}))
	f.Add(wire.KVWant, wire.AppendWant(nil, id, true))
	f.Add(wire.KVAck, wire.AppendKVAck(nil, id, 1, 1<<60))
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		w, _, _ := pair(t)
		for _, n := range w.nodes {
			n.Deliver(w.nodes[1-int(n.name[1]-'0')].name, wire.KVOffer+kind%4, body)
		}
		w.pass(50*time.Millisecond, 100)
		w.cut(w.nodes[0], w.nodes[1])
		w.link()
		e := &truth{backend: "b0", runs: make(map[uint64]*kvindex.Stored)}
		for range 2 {
			w.pass(time.Second, 1000)
		}
		want := w.nodes[0].knows(e.id())
		if got := w.nodes[1].knows(e.id()); len(got) != len(want) || len(got) == 0 {
			t.Errorf("%d blocks are known after a new link, %d are told", len(got), len(want))
		}
	})
}

// BenchmarkTell tells one peer of n blocks, as a copy and as changes.
func BenchmarkTell(b *testing.B) {
	for _, copied := range []bool{true, false} {
		b.Run(fmt.Sprintf("copy=%v", copied), func(b *testing.B) {
			nodes := loopbackWith(b, 2, 1, func(c *Config) { c.Index = testIndex() })
			feed, err := nodes[0].c.Feed("b0", 0, "m")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			blocks := 0
			for b.Loop() {
				benchTell(b, nodes, feed, copied)
				blocks += 100_000
			}
			b.ReportMetric(float64(blocks)/b.Elapsed().Seconds(), "blocks/s")
		})
	}
}

var benchRun = run(rand.New(rand.NewPCG(1, 1)), 100_000)

// benchTell has 100,000 blocks told, and waits until they are known.
func benchTell(b *testing.B, nodes []*testNode, feed *Feed, copied bool) {
	known := func(n int) {
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			list := nodes[1].c.index.status()
			if len(list) == 1 && list[0].Blocks == n && list[0].Whole {
				return
			}
			if time.Now().After(end) {
				b.Fatalf("not %d blocks in time: %+v", n, list)
			}
		}
	}
	want := func(on bool) {
		nodes[1].c.peers.get("n0").send(link.Deltas, wire.KVWant, wire.AppendWant(nil, feed.place.id, on))
	}
	known(0)
	if copied { // nobody is told while it fills
		b.StopTimer()
		want(false)
		time.Sleep(20 * time.Millisecond)
	}
	s := benchRun
	for i := 0; i < len(s.Hashes); i += 1000 {
		part := kvindex.Stored{Hashes: s.Hashes[i : i+1000], Tokens: s.Tokens[4*i : 4*(i+1000)], BlockSize: 4}
		if i > 0 {
			part.HasParent, part.Parent = true, s.Hashes[i-1]
		}
		feed.Store(&part)
		if !copied {
			time.Sleep(time.Millisecond)
		}
	}
	if copied {
		b.StartTimer()
		want(true)
	}
	known(feed.Stats().Blocks)
	feed.Reset()
}
