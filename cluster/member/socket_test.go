package member

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

// eventually waits in real time; only the test with sockets needs it.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("not in 30 s: %s", what)
		}
	}
}

func TestThreeNodesMeetOverSockets(t *testing.T) {
	others := goleak.IgnoreCurrent()
	defer eventually(t, "memberlist's last probes are over, and no goroutine is left", func() bool { return goleak.Find(others) == nil })
	secret := &fakeKeys{keys: [][]byte{key(3)}}
	var nodes []*node
	for i := range 3 {
		n := &node{reg: prometheus.NewRegistry(), logs: &logs{}, done: make(chan struct{})}
		c := Config{
			Name: fmt.Sprint("n", i), Cluster: "sockets", Bind: "127.0.0.1:0", Meta: goodMeta(), Keys: secret,
			Logger: slog.New(slog.NewTextHandler(n.logs, nil)), Registerer: n.reg, OnChange: n.onChange, OnFact: n.onFact,
		}
		if i > 0 {
			c.Join = []string{nodes[0].Address()}
		}
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		n.Members = m
		ctx, stop := context.WithCancel(t.Context())
		defer func() { stop(); <-n.done }()
		n.stop = stop
		go func() {
			defer close(n.done)
			m.Run(ctx)
		}()
		nodes = append(nodes, n)
	}
	eventually(t, "three nodes are one cluster", func() bool { return agree(nodes) })
	throwJunk(t, nodes[0].Address())
	nodes[1].Tell(Fact{Kind: Drain, Subject: "s", Version: 1})
	eventually(t, "a fact reaches the others", func() bool { return len(nodes[0].told()) == 1 && len(nodes[2].told()) == 1 })
	nodes[2].stop()
	<-nodes[2].done
	eventually(t, "the third has left", func() bool { return nodes[0].of("n2").State == Left && agree(nodes[:2]) })
}

// throwJunk sends packets and streams of noise.
func throwJunk(t *testing.T, addr string) {
	t.Helper()
	udp, err := net.Dial("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		b := make([]byte, 1+rng.IntN(1000))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		_, _ = udp.Write(b)
		tcp, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = tcp.Write(b)
		_ = tcp.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.Copy(io.Discard, tcp)
		tcp.Close()
	}
}
