package link

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

func pair(t *testing.T, h *hub) (a, b *node) {
	t.Helper()
	a, b = h.start(t, "a", nil), h.start(t, "b", nil)
	peers := []Target{{Name: "a", Boot: 1, Addr: "a"}, {Name: "b", Boot: 1, Addr: "b"}}
	a.SetPeers(peers)
	b.SetPeers(peers)
	settle(100 * time.Millisecond)
	return a, b
}

func TestFramesArriveInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := pair(t, h)
		for i := range 100 {
			if !a.peer(t).Send(Urgent, 7, []byte("n"), fmt.Append(nil, i)) {
				t.Fatal("not sent")
			}
		}
		settle(time.Second)
		got := b.got()
		if len(got) != 100 || got[0] != "7 n0" || got[99] != "7 n99" {
			t.Errorf("got %d frames: %v", len(got), got)
		}
		if v := a.peer(t).Protocol(); v != 2 {
			t.Errorf("protocol %d, want the highest common", v)
		}
	})
}

func TestOnlyTheLowerNameDials(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := h.start(t, "a", nil), h.start(t, "b", nil)
		b.SetPeers([]Target{{Name: "a", Addr: "a"}})
		settle(time.Minute)
		wantEvents(t, &a.recorder, "")
		a.SetPeers([]Target{{Name: "b", Addr: "b"}})
		settle(time.Second)
		wantEvents(t, &a.recorder, "up b 1")
		wantEvents(t, &b.recorder, "up a 1")
	})
}

func TestIdleLinkStaysUpByHeartbeats(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := pair(t, h)
		settle(10 * time.Minute)
		wantEvents(t, &a.recorder, "up b 1")
		wantEvents(t, &b.recorder, "up a 1")
		if a.peer(t).Silence() > 400*time.Millisecond || a.peer(t).RTT() == 0 {
			t.Errorf("last frame %v ago, round trip %v", a.peer(t).Silence(), a.peer(t).RTT())
		}
	})
}

func TestSilentPeerLosesItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		h.puppet(t, "b", hello("a", 9)).discard()
		settle(1499 * time.Millisecond)
		wantEvents(t, &b.recorder, "up a 9")
		settle(2 * time.Millisecond)
		wantEvents(t, &b.recorder, "up a 9, down a 9 lease")
	})
}

func TestAnyFrameRenewsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		p := h.puppet(t, "b", hello("a", 9))
		p.discard()
		for range 20 {
			settle(time.Second)
			p.write(200, "a kind of a later version")
			p.write(0xFE, "a link kind of a later version")
		}
		wantEvents(t, &b.recorder, "up a 9")
		if got := b.got(); len(got) != 20 {
			t.Errorf("the handler got %d frames, want those below %#x", len(got), kindLink)
		}
	})
}

func TestPeerThatReadsNothingCostsOnlyItsQueue(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", func(c *Config, _ *node) { c.Bounds = [lanes]int{1000, 2000, 3000} })
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		p := h.puppet(t, "b", hello("a", 9))
		p.chatter()
		synctest.Wait()
		start, body := time.Now(), make([]byte, 95)
		for lane, want := range []int{10, 20, 30} {
			sent := 0
			for b.peer(t).Send(Lane(lane), 1, body) {
				sent++
			}
			if sent < want || b.peer(t).Queued(Lane(lane)) > want*100 {
				t.Errorf("lane %v took %d frames, holds %d bytes", Lane(lane), sent, b.peer(t).Queued(Lane(lane)))
			}
		}
		if time.Since(start) != 0 {
			t.Error("Send waited")
		}
		settle(6 * time.Second)
		wantEvents(t, &b.recorder, "up a 9, down a 9 write")
	})
}

func TestFullLaneTakesAgainWhenItIsRead(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", func(c *Config, _ *node) { c.Bounds[Bulk] = 100 })
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		p := h.puppet(t, "b", hello("a", 9))
		synctest.Wait()
		for b.peer(t).Send(Bulk, 1, make([]byte, 50)) {
		}
		if !b.peer(t).Send(Urgent, 1, make([]byte, 50)) {
			t.Error("another lane is full too")
		}
		p.discard()
		synctest.Wait()
		if !b.peer(t).Send(Bulk, 1, make([]byte, 5000)) {
			t.Error("a frame beyond the bound must go through an empty lane")
		}
	})
}

func TestUrgentFramesOvertake(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		p := h.puppet(t, "b", hello("a", 9))
		p.expect(kindPing)
		synctest.Wait()
		b.peer(t).Send(Bulk, 3, make([]byte, 8000))
		synctest.Wait() // it is being written
		for range 20 {
			b.peer(t).Send(Bulk, 3, make([]byte, 8000))
			b.peer(t).Send(Deltas, 2, make([]byte, 8000))
		}
		p.expect(3)
		b.peer(t).Send(Urgent, 1, []byte("now"))
		before := 0
		order := ""
		for before = 0; ; before++ {
			kind, _ := p.next()
			if kind == 1 {
				break
			}
		}
		if before > 4 { // the rest of the chunk at hand, and one that was taken
			t.Errorf("%d frames of 8,000 bytes came before the urgent one", before)
		}
		for len(order) < 24 {
			kind, _ := p.next()
			order += string('0' + kind)
		}
		if strings.Count(order, "2") < 12 || !strings.Contains(order, "3") {
			t.Errorf("deltas come more often than bulk, and bulk comes too: %s", order)
		}
	})
}

func TestRepliesToABurstGoOutTogether(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", func(_ *Config, n *node) {
			n.frame = func(p *Peer, _ byte, body []byte) { p.Send(Urgent, 2, body) }
		})
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		p := h.puppet(t, "b", hello("a", 9))
		p.expect(kindPing)
		synctest.Wait() // or the writer would still be at it
		var burst []byte
		for i := range 50 {
			burst = appendFrame(burst, 1, 2, fmt.Appendf(nil, "%02d", i))
		}
		p.Write(burst)
		synctest.Wait()
		whole := make([]byte, 1<<16) // a pipe's read returns one write
		if n, _ := p.Read(whole); n != len(burst) {
			t.Errorf("the first write has %d bytes of %d", n, len(burst))
		}
	})
}

func TestRefusalReachesBothSides(t *testing.T) {
	refuse := func(c *Config, n *node) {
		n.check = func(h *Hello) error { return fmt.Errorf("block size %d here, %d there", 64, h.BlockSize) }
	}
	protocols := func(lo, hi uint8) func(*Config, *node) {
		return func(c *Config, _ *node) {
			h := c.Self()
			h.MinProtocol, h.MaxProtocol = lo, hi
			c.Self = func() Hello { return h }
		}
	}
	for name, c := range map[string]struct {
		a, b func(*Config, *node)
		want string
	}{
		"by the dialler":       {refuse, nil, "block size 64 here, 64 there"},
		"by the accepting one": {nil, refuse, "block size 64 here, 64 there"},
		"by both":              {refuse, refuse, "block size 64 here, 64 there"},
		"protocol":             {protocols(1, 2), protocols(3, 4), "speaks 3..4"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub) {
				a, b := h.start(t, "a", c.a), h.start(t, "b", c.b)
				a.SetPeers([]Target{{Name: "b", Addr: "b"}})
				b.SetPeers([]Target{{Name: "a", Addr: "a"}})
				settle(2 * time.Minute)
				for _, n := range []*node{a, b} {
					wantEvents(t, &n.recorder, "")
					if n.log.count(c.want) != 1 || n.log.count("\n") != 1 {
						t.Errorf("%s must say once %q:\n%s", n.name, c.want, n.log.b.String())
					}
				}
				if tries := metric(t, a.reg, "kvca_link_refused_total"); tries < 20 || tries > 61 {
					t.Errorf("%v tries in two minutes, want one in 2 to 5 s", tries)
				}
			})
		})
	}
}

func TestDialledNodeMustBeTheOneThatWasMeant(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, c := h.start(t, "a", nil), h.start(t, "c", nil)
		a.SetPeers([]Target{{Name: "b", Addr: "c"}})
		settle(time.Second)
		wantEvents(t, &a.recorder, "")
		wantEvents(t, &c.recorder, "")
		if c.log.count(`reached \"c\"`) != 1 {
			t.Errorf("the log of c: %s", c.log.b.String())
		}
	})
}

func TestPeersThatAreNoMembersAreClosed(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := pair(t, h)
		a.SetPeers(nil)
		settle(time.Second)
		wantEvents(t, &a.recorder, "up b 1, down b 1 not_member")
		wantEvents(t, &b.recorder, "up a 1, down a 1 peer")
		a.SetPeers([]Target{{Name: "b", Boot: 1, Addr: "b"}})
		settle(time.Second)
		wantEvents(t, &a.recorder, "up b 1, down b 1 not_member, up b 1")
	})
}

func TestStrangersAreKeptForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := h.start(t, "a", nil), h.start(t, "b", nil)
		a.SetPeers([]Target{{Name: "b", Addr: "b"}})
		settle(time.Second)
		b.SetPeers([]Target{{Name: "c", Addr: "c"}}) // still not a
		settle(3 * time.Second)
		wantEvents(t, &b.recorder, "up a 1")
		settle(2 * time.Second)
		wantEvents(t, &b.recorder, "up a 1, down a 1 not_member, up a 1")
		b.SetPeers([]Target{{Name: "a", Boot: 1, Addr: "a"}})
		settle(time.Minute)
		wantEvents(t, &b.recorder, "up a 1, down a 1 not_member, up a 1")
	})
}

func TestNewerConnectionReplacesAnOlderOne(t *testing.T) {
	for name, c := range map[string]struct {
		boot uint64
		want string
	}{
		"same process":    {9, "up a 9, down a 9 replaced, up a 9"},
		"another process": {10, "up a 9, down a 9 replaced, up a 10"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub) {
				b := h.start(t, "b", nil)
				b.SetPeers([]Target{{Name: "a"}})
				h.puppet(t, "b", hello("a", 9)).discard()
				settle(100 * time.Millisecond)
				h.puppet(t, "b", hello("a", c.boot)).discard()
				settle(100 * time.Millisecond)
				wantEvents(t, &b.recorder, c.want)
			})
		})
	}
}

func TestRestartedProcessEndsTheLinkOfTheOldOne(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		h.puppet(t, "b", hello("a", 9)).discard()
		settle(100 * time.Millisecond)
		b.SetPeers([]Target{{Name: "a", Boot: 10}})
		settle(100 * time.Millisecond)
		wantEvents(t, &b.recorder, "up a 9, down a 9 replaced")
	})
}

func TestOfTwoConnectionsTheLowerNamesOneStays(t *testing.T) {
	// Node a dials b; the puppet b dials a as well, which it should leave to a.
	t.Run("the lower name's comes second", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *hub) {
			a := h.start(t, "a", nil)
			h.puppet(t, "a", hello("b", 9)).discard()
			settle(10 * time.Millisecond)
			l := h.listen("b")
			a.SetPeers([]Target{{Name: "b", Boot: 10, Addr: "b"}})
			welcome(t, l, hello("b", 9)).discard()
			settle(10 * time.Millisecond)
			wantEvents(t, &a.recorder, "up b 9, down b 9 replaced, up b 9")
		})
	})
	t.Run("the lower name's comes first", func(t *testing.T) {
		bubble(t, func(t *testing.T, h *hub) {
			a := h.start(t, "a", nil)
			l := h.listen("b")
			a.SetPeers([]Target{{Name: "b", Addr: "b"}})
			welcome(t, l, hello("b", 9)).discard()
			settle(10 * time.Millisecond)
			c, _ := h.dial(context.Background(), "a")
			p := newPuppet(t, c)
			self := hello("b", 9)
			p.write(kindHello, string(self.append(nil)))
			p.expect(kindHello)
			if body := p.expect(kindRefuse); body[0] != byte(refusedDuplicate) {
				t.Errorf("refused as %q", body)
			}
			settle(10 * time.Millisecond)
			wantEvents(t, &a.recorder, "up b 9")
		})
	})
}

func TestLostLinkIsDialledAgain(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := pair(t, h)
		for range 3 {
			a.peer(t).conn.Close()
			settle(time.Second)
		}
		if got := strings.Count(a.seen(), "up b 1"); got != 4 {
			t.Errorf("%d links, want 4: %s", got, a.seen())
		}
		b.peer(t).Close(errors.New("for a test"))
		settle(time.Second)
		b.peer(t)
		if a.log.count("for a test") != 1 {
			t.Error("the reason must reach the other side")
		}
	})
}

func TestGarbageEndsTheLink(t *testing.T) {
	for name, garbage := range map[string][]byte{
		"length zero":     {0, 0, 0, 0, 1},
		"length too long": {1, 0, 16, 0, 1},
		"second hello":    appendFrame(nil, kindHello, 0),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, h *hub) {
				b := h.start(t, "b", nil)
				b.SetPeers([]Target{{Name: "a"}})
				p := h.puppet(t, "b", hello("a", 9))
				p.discard()
				p.Write(garbage)
				settle(time.Second)
				wantEvents(t, &b.recorder, "up a 9, down a 9 garbage")
			})
		})
	}
}

func TestWhoeverIsNoPeerIsToldNothing(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		h.start(t, "b", nil)
		for _, garbage := range []string{"GET / HTTP/1.1\r\n\r\n", "\x06\x00\x00\x00\xf0kvca.", ""} {
			c, _ := h.dial(context.Background(), "b")
			c.Write([]byte(garbage))
			start := time.Now()
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("after %q: %d bytes, %v", garbage, n, err)
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("after %q it was closed in %v", garbage, d)
			}
			c.Close()
		}
	})
}

func TestSilentConnectionsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		for range 40 {
			c, _ := h.dial(context.Background(), "b")
			t.Cleanup(func() { c.Close() })
		}
		synctest.Wait()
		if n := metric(t, b.reg, "kvca_link_handshake_failures_total"); n != 40-maxPendingHost {
			t.Errorf("%v connections were closed unheard, want %d", n, 40-maxPendingHost)
		}
		settle(4 * time.Second)
		h.puppet(t, "b", hello("a", 9)).discard()
	})
}

func TestStrangersAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		for i := range maxStrangers {
			h.puppet(t, "b", hello(fmt.Sprint("x", i), 9)).discard()
			synctest.Wait()
		}
		c, _ := h.dial(context.Background(), "b")
		p := newPuppet(t, c)
		self := hello("one more", 9)
		p.write(kindHello, string(self.append(nil)))
		p.expect(kindHello)
		p.expect(kindRefuse)
		p.write(kindAccept, "")
		settle(time.Minute)
		if n := len(b.m.peers); n != 0 {
			t.Errorf("metrics of %d strangers are kept", n)
		}
	})
}

// comeAndGo links a node with b and hangs up.
func comeAndGo(t *testing.T, h *hub, name string) {
	t.Helper()
	p := h.puppet(t, "b", hello(name, 9))
	p.discard()
	synctest.Wait()
	p.Close()
	synctest.Wait()
}

func TestStrangersDoNotFillTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		b := h.start(t, "b", nil)
		for i := range 100 {
			comeAndGo(t, h, fmt.Sprint("x", i))
		}
		if got := b.log.count("\n"); got > 4 {
			t.Errorf("%d lines about strangers", got)
		}
		b.SetPeers([]Target{{Name: "a", Boot: 9}})
		comeAndGo(t, h, "a")
		if b.log.count(`msg="peer linked" peer=a`) != 1 || b.log.count(`msg="peer link down" peer=a`) != 1 {
			t.Error("nothing was said about a member")
		}
	})
}

func TestShutdownSaysGoodbye(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, b := h.start(t, "a", nil), &node{}
		self := hello("b", 1)
		b.Links, _ = New(Config{Self: func() Hello { return self }, Listener: h.listen("b"), Dial: h.dial, Handler: b})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		a.SetPeers([]Target{{Name: "b", Addr: "b"}})
		settle(time.Second)
		cancel()
		<-done
		wantEvents(t, &b.recorder, "up a 1, down a 1 shutdown")
		settle(time.Millisecond)
		wantEvents(t, &a.recorder, "up b 1, down b 1 peer")
	})
}

func TestSendAfterDownIsFalse(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, _ := pair(t, h)
		p := a.peer(t)
		for kind, size := range map[byte]int{kindPing: 0, 1: MaxFrame} {
			if p.Send(Urgent, kind, make([]byte, size)) {
				t.Errorf("kind %#x with %d bytes was sent", kind, size)
			}
		}
		p.Close(nil)
		if p.Send(Urgent, 1, nil) {
			t.Error("sent on a closed link")
		}
		settle(time.Second)
		if p.Send(Urgent, 1, nil) || p.Queued(Urgent) != 0 {
			t.Error("sent on a link that is down")
		}
	})
}

func TestMetricsAreWellNamed(t *testing.T) {
	bubble(t, func(t *testing.T, h *hub) {
		a, _ := pair(t, h)
		page := httptest.NewRecorder()
		promhttp.HandlerFor(a.reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/", nil))
		problems, err := promlint.New(page.Body).Lint()
		if err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
	})
}

func metric(t *testing.T, reg prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
