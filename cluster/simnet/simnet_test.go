package simnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"go.uber.org/goleak"

	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection from a to b.
func pair(t *testing.T, n *Network) (ours, theirs net.Conn) {
	t.Helper()
	l, err := n.Host("b").Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ours, err = n.Host("a").Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

func TestStreamDeliversAllInOrder(t *testing.T) {
	for _, wait := range []time.Duration{0, 3 * time.Millisecond} {
		virtualtime.Test(t, func(t *testing.T) {
			n := New(1)
			n.SetStreams(wait, wait)
			ours, theirs := pair(t, n)
			sent := make([]byte, 300_000)
			for i := range sent {
				sent[i] = byte(rand.Uint32())
			}
			go func() {
				for rest := sent; len(rest) > 0; {
					k := min(len(rest), 1+rand.IntN(9000))
					if _, err := ours.Write(rest[:k]); err != nil {
						t.Error(err)
					}
					rest = rest[k:]
				}
				ours.Close()
			}()
			got, err := io.ReadAll(theirs)
			if err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("read %d bytes, %v; want the %d sent", len(got), err, len(sent))
			}
		})
	}
}

func TestStreamTakesItsTime(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		n.SetStreams(10*time.Millisecond, 0)
		start := time.Now()
		ours, theirs := pair(t, n)
		_, _ = ours.Write([]byte("x"))
		read(t, theirs, "x")
		if took := time.Since(start); took != 30*time.Millisecond {
			t.Fatalf("a dial and a byte took %v, want three ways of 10 ms", took)
		}
	})
}

func TestWriteBlocksAtTheBoundUntilItsDeadline(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ours, _ := pair(t, New(1))
		_ = ours.SetWriteDeadline(time.Now().Add(time.Second))
		sent, err := ours.Write(make([]byte, maxPipe+1))
		if sent != maxPipe || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("wrote %d, %v; want %d and a timeout", sent, err, maxPipe)
		}
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("%v does not say that it is a timeout", err)
		}
	})
}

func TestReadEndsWhenItsDeadlineIsMoved(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ours, _ := pair(t, New(1))
		time.AfterFunc(time.Second, func() { _ = ours.SetReadDeadline(time.Now()) })
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read: %v, want a timeout", err)
		}
	})
}

func TestCloseEndsReadsAndThePeersWrites(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ours, theirs := pair(t, New(1))
		time.AfterFunc(time.Second, func() { ours.Close() })
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("read: %v, want closed", err)
		}
		if _, err := theirs.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("write to the closed end: %v", err)
		}
	})
}

func TestPartitionStallsStreamsAndHealLetsThemGoOn(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		ours, theirs := pair(t, n)
		_, _ = ours.Write([]byte("before"))
		n.Partition([]string{"a"}, []string{"b"})
		_, _ = ours.Write([]byte("during"))
		read(t, theirs, "before")
		_ = theirs.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read across the partition: %v", err)
		}
		_ = theirs.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, n.Heal)
		read(t, theirs, "during")
	})
}

func TestDialAcrossAPartitionWaitsAsLongAsItMay(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		if _, err := n.Host("b").Listen(7); err != nil {
			t.Fatal(err)
		}
		n.Partition([]string{"a"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Host("a").Dial(ctx, "b:7"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("dial: %v, want a timeout", err)
		}
		time.AfterFunc(time.Hour, n.Heal)
		if _, err := n.Host("a").Dial(t.Context(), "b:7"); err != nil {
			t.Fatalf("dial after the partition: %v", err)
		}
	})
}

func TestKillResetsAndRestartListensAgain(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		b := n.Host("b")
		l, _ := b.Listen(7)
		ours, theirs := pair(t, n)
		time.AfterFunc(time.Second, b.Kill)
		if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("read from the killed: %v", err)
		}
		if _, err := theirs.Write([]byte("x")); err == nil {
			t.Fatal("the killed process still writes")
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Fatalf("accept by the killed: %v", err)
		}
		if _, err := n.Host("a").Dial(t.Context(), "b:7"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial to the killed: %v", err)
		}
		b.Restart()
		if _, err := b.Listen(7); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Host("a").Dial(t.Context(), "b:7"); err != nil {
			t.Fatalf("dial to the restarted: %v", err)
		}
	})
}

func TestCutStreamsBreaksOnlyThePair(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		l, _ := n.Host("b").Listen(7)
		ours, _ := pair(t, n)
		other, err := n.Host("c").Dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		n.CutStreams("b", "a")
		if _, err := ours.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("write after the cut: %v", err)
		}
		if _, err := other.Write([]byte("x")); err != nil {
			t.Fatalf("another's write: %v", err)
		}
	})
}

func TestPausedHostNeitherReadsNorWrites(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		ours, theirs := pair(t, n)
		n.Host("b").Pause()
		if _, err := ours.Write([]byte("in")); err != nil {
			t.Fatalf("the kernel of a paused host takes bytes: %v", err)
		}
		start := time.Now()
		time.AfterFunc(time.Minute, n.Host("b").Resume)
		go func() { _, _ = theirs.Write([]byte("out")) }()
		read(t, ours, "out")
		read(t, theirs, "in")
		if time.Since(start) != time.Minute {
			t.Fatal("bytes moved while the host was paused")
		}
	})
}

// received counts what waits at a transport.
func received(tr memberlist.Transport) int {
	time.Sleep(time.Minute)
	synctest.Wait()
	return len(tr.PacketCh())
}

func TestPacketFaults(t *testing.T) {
	for _, c := range []struct {
		name            string
		drop, duplicate float64
		fault           func(*Network)
		least, most     int
	}{
		{name: "none", least: 100, most: 100},
		{name: "all lost", drop: 1},
		{name: "half lost", drop: 0.5, least: 25, most: 75},
		{name: "all doubled", duplicate: 1, least: 200, most: 200},
		{name: "partition", fault: func(n *Network) { n.Partition([]string{"a"}) }},
		{name: "sender paused", fault: func(n *Network) { n.Host("a").Pause() }},
		{name: "receiver paused", fault: func(n *Network) { n.Host("b").Pause() }},
		{name: "receiver killed", fault: func(n *Network) { n.Host("b").Kill() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				n := New(7)
				a, b := n.Host("a").Packet(1), n.Host("b").Packet(1)
				n.SetPackets(c.drop, c.duplicate, 0.1, time.Millisecond, time.Millisecond)
				if c.fault != nil {
					c.fault(n)
				}
				for range 100 {
					if _, err := a.WriteTo([]byte("x"), "10.0.0.2:1"); err != nil {
						t.Fatal(err)
					}
				}
				if got := received(b); got < c.least || got > c.most {
					t.Fatalf("%d of 100 packets arrived, want %d..%d", got, c.least, c.most)
				}
			})
		})
	}
}

func TestPausedHostReadsItsPacketsLater(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		a, b := n.Host("a").Packet(1), n.Host("b").Packet(1)
		n.Host("b").Pause()
		_, _ = a.WriteTo([]byte("x"), "b:1")
		n.Host("b").Resume()
		if got := received(b); got != 1 {
			t.Fatalf("%d packets after the pause, want 1", got)
		}
	})
}

func TestPausedHostSendsItsPacketsLater(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(1)
		a, b := n.Host("a").Packet(1), n.Host("b").Packet(1)
		n.Host("a").Pause()
		_, _ = a.WriteTo([]byte("x"), "b:1")
		if got := received(b); got != 0 {
			t.Fatalf("%d packets left the paused host", got)
		}
		n.Host("a").Resume()
		if got := received(b); got != 1 {
			t.Fatalf("%d packets after the pause, want 1", got)
		}
	})
}

func TestSomePacketsAreOvertaken(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := New(3)
		n.SetPackets(0, 0, 0.3, time.Millisecond, 0)
		a, b := n.Host("a").Packet(1), n.Host("b").Packet(1)
		for i := range 100 {
			_, _ = a.WriteTo([]byte{byte(i)}, "b:1")
			time.Sleep(time.Millisecond)
		}
		overtaken, last := 0, -1
		for range received(b) {
			if got := int((<-b.PacketCh()).Buf[0]); got < last {
				overtaken++
			} else {
				last = got
			}
		}
		if overtaken < 10 {
			t.Fatalf("%d packets were overtaken", overtaken)
		}
	})
}

func TestNameResolvesToMany(t *testing.T) {
	n := New(1)
	n.Host("a")
	n.Host("b")
	n.Name("svc", "a", "b", "absent")
	if ips, err := n.LookupNetIP(t.Context(), "ip", "svc"); err != nil || len(ips) != 2 {
		t.Fatalf("svc is %v, %v; want two addresses", ips, err)
	}
	if ips, err := n.LookupNetIP(t.Context(), "ip", "b"); err != nil || ips[0] != n.Host("b").IP() {
		t.Fatalf("b is %v, %v", ips, err)
	}
	if _, err := n.LookupNetIP(t.Context(), "ip", "nobody"); err == nil {
		t.Fatal("an unknown name resolves")
	}
}
