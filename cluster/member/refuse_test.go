package member

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestDisagreeingNodeIsRefusedOnBothSides(t *testing.T) {
	for _, c := range []struct {
		reason reason
		change func(*Config)
		marks  []string // both values
	}{
		{otherCluster, func(c *Config) { c.Cluster = "test/two" }, []string{`test/one`, `test/two`}},
		{otherProtocol, func(c *Config) { c.Meta.MinProtocol, c.Meta.MaxProtocol = 3, 4 }, []string{"3..4", "1..2"}},
		{otherHashKey, func(c *Config) { c.Meta.KeyCheck = 8 }, []string{"0000000000000007", "0000000000000008"}},
		{otherBlockSize, func(c *Config) { c.Meta.BlockSize = 1024 }, []string{"512", "1024"}},
	} {
		t.Run(string(c.reason), func(t *testing.T) {
			inBubble(t, func(r *rig) {
				nodes := r.form(3)
				other := r.start("x", "x", []string{"a", "b"}, c.change)
				<-other.Joined()
				time.Sleep(5 * time.Minute)
				if !agree(nodes) || !agree([]*node{other}) {
					r.within(0, "the node stays out", func() bool { return false })
				}
				for _, n := range []*node{nodes[0], nodes[1], other} {
					if got := n.logs.lines("level=WARN", "node refused", "reason="+string(c.reason), c.marks[0], c.marks[1]); len(got) == 0 || len(got) > 3 {
						t.Errorf("%s logged the refusal %d times, want once a peer: %q", n.config.Name, len(got), n.logs.lines("level=WARN"))
					}
					if got := n.counter("refused_total", "reason="+string(c.reason)); got < 5 {
						t.Errorf("%s counted %v refusals in five minutes", n.config.Name, got)
					}
				}
			})
		})
	}
}

func TestJoinErrorNamesBothValues(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		inBubble(t, func(r *rig) {
			secret := func(c *Config) {
				if encrypted {
					c.Keys = &fakeKeys{keys: [][]byte{key(1)}}
				}
			}
			r.start("a", "a", nil, secret)
			b := r.start("b", "b", nil, secret, func(c *Config) { c.Cluster = "test/two" })
			_, err := b.list.Join([]string{"10.0.0.1:7946"})
			if err == nil {
				t.Fatal("joined another cluster")
			}
			synctest.Wait()
			time.Sleep(time.Second)
			if got := b.logs.lines("node refused", "test/one", "test/two"); len(got) != 1 {
				t.Errorf("encrypted %t: the joiner logged %q, error %v", encrypted, got, err)
			}
			if got := b.logs.lines("level=WARN"); len(got) != 1 {
				t.Errorf("encrypted %t: the joiner logged more than the refusal: %q", encrypted, got)
			}
		})
	}
}

func TestMixedBlockSizesAreBorneWhereBothAllow(t *testing.T) {
	mixed := func(c *Config) { c.Mixed = true }
	larger := func(c *Config) { c.Meta.BlockSize = 1024 }
	inBubble(t, func(r *rig) {
		nodes := r.form(2, mixed)
		nodes = append(nodes, r.start("c", "c", []string{"a"}, mixed, larger))
		r.within(5*time.Second, "mixed sizes meet", func() bool { return agree(nodes) })
		strict := r.start("d", "d", []string{"a"}, larger)
		time.Sleep(time.Minute)
		if !agree(nodes) || !agree([]*node{strict}) {
			t.Error("one side alone allowed it, and a node came in")
		}
	})
}

func TestAdmissionIsSymmetric(t *testing.T) {
	metas := []Meta{}
	for _, cluster := range []string{"a", "b"} {
		for _, size := range []int{1, 2} {
			for _, mixed := range []bool{false, true} {
				for _, check := range []uint64{1, 2} {
					for _, top := range []uint8{1, 2, 3} {
						metas = append(metas, Meta{Cluster: cluster, BlockSize: size, Mixed: mixed, KeyCheck: check, MinProtocol: max(1, top-1), MaxProtocol: top})
					}
				}
			}
		}
	}
	for _, a := range metas {
		for _, b := range metas {
			x, y := admit(&a, &b, "n"), admit(&b, &a, "n")
			if (x == nil) != (y == nil) || x != nil && x.reason != y.reason {
				t.Fatalf("%+v and %+v disagree about each other: %v, %v", a, b, x, y)
			}
		}
	}
}

func TestMostMembersAreBounded(t *testing.T) {
	inBubble(t, func(r *rig) {
		n := r.start("a", "a", nil)
		meta := goodMeta()
		meta.Cluster = n.config.Cluster
		raw, _ := meta.encode()
		for i := range 2 * maxMembers {
			stranger := &memberlist.Node{Name: fmt.Sprint("n", i), Addr: net.IP{10, 9, 9, 9}, Port: 1, Meta: raw}
			if (hooks{n.Members}).NotifyAlive(stranger) == nil {
				(hooks{n.Members}).NotifyJoin(stranger)
			}
		}
		if got := len(n.Members.Members()); got != maxMembers {
			t.Fatalf("%d members are listed, want %d", got, maxMembers)
		}
		if got := n.counter("refused_total", "reason=full"); got != maxMembers+1 {
			t.Fatalf("%v were refused for room", got)
		}
	})
}

// junk are things that come to an open port, and some that nearly make sense.
func junk(label string) [][]byte {
	labelled := func(b ...byte) []byte {
		return append(append([]byte{244, byte(len(label))}, label...), b...)
	}
	all := [][]byte{
		{0},
		{244},
		{244, 0},
		{244, 255, 1},
		[]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
		{0x16, 3, 1, 0, 200},
		bytes.Repeat([]byte{255}, 9000),
		labelled(), labelled(244), labelled(7, 255), labelled(9, 0x82), labelled(12, 1, 2, 3, 4, 5),
		labelled(6, 0x83, 0xa5, 'N', 'o', 'd', 'e', 's', 0xce, 255, 255, 255, 255),
		labelled(10, 255, 255, 255, 255), labelled(8, 0x81, 0xa1, 'x', 1), labelled(8),
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		b := make([]byte, 1+rng.IntN(80))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		b[0] = byte(rng.IntN(16))
		all = append(all, labelled(b...))
	}
	return all
}

func TestJunkAtTheGossipPortIsHarmless(t *testing.T) {
	inBubble(t, func(r *rig) {
		nodes := r.form(3)
		stranger := r.net.Host("stranger")
		from := stranger.Packet(9).(memberlist.NodeAwareTransport)
		defer from.Shutdown()
		for _, b := range junk("test/one") {
			if _, err := from.WriteTo(b, "a:7946"); err != nil {
				t.Fatal(err)
			}
			c, err := stranger.Dial(context.Background(), "a:7946")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = c.Write(b)
			_ = c.SetDeadline(time.Now().Add(50 * time.Millisecond))
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
		time.Sleep(10 * time.Second)
		r.within(0, "the cluster is whole", func() bool { return agree(nodes) })
		a := nodes[0]
		if a.counter("gossip_malformed_total", "transport=packet") < 50 || a.counter("gossip_malformed_total", "transport=stream") < 10 {
			t.Errorf("junk is not counted: %v packets, %v streams", a.counter("gossip_malformed_total", "transport=packet"), a.counter("gossip_malformed_total", "transport=stream"))
		}
		if got := a.logs.lines("level=WARN"); len(got) > 60 {
			t.Errorf("%d warnings about junk", len(got))
		}
	})
}

func TestStreamsThatSayNothingAreBoundedAndClosed(t *testing.T) {
	inBubble(t, func(r *rig) {
		nodes := r.form(2)
		var open []net.Conn
		for range 2 * maxStreams {
			c, err := r.net.Host("stranger").Dial(context.Background(), "a:7946")
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		time.Sleep(2 * labelPatience)
		for _, c := range open {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Fatal("a silent stream got an answer")
			}
			c.Close()
		}
		if got := nodes[0].counter("gossip_streams_refused_total", ""); got < maxStreams {
			t.Errorf("%v streams were refused, want at least %d", got, maxStreams)
		}
		if !agree(nodes) {
			t.Error("the cluster fell apart")
		}
	})
}
