package link

import (
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// caller is what a handler does for calls: a request with a number, and whoever
// waits for it.
type caller struct {
	recorder
	mu      sync.Mutex
	next    uint32
	waiting map[uint32]chan struct{}
	ready   chan *Peer
}

func (c *caller) Up(p *Peer)        { c.ready <- p }
func (c *caller) Down(*Peer, error) {}

func (c *caller) Frame(p *Peer, kind byte, body []byte) {
	if kind == 1 {
		p.Send(Urgent, 2, body[:32])
		return
	}
	id := binary.LittleEndian.Uint32(body)
	c.mu.Lock()
	done := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	done <- struct{}{}
}

func (c *caller) call(p *Peer, body []byte, done chan struct{}) {
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = done
	c.mu.Unlock()
	binary.LittleEndian.PutUint32(body, id)
	if !p.Send(Urgent, 1, body) {
		panic("not sent")
	}
	<-done
}

// loopback links two nodes over real sockets.
func loopback(tb testing.TB, tlsOf func(name string) TLS, a, b Handler) (la, lb *Links) {
	addr := ""
	for _, name := range []string{"b", "a"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		self := hello(name, 1)
		c := Config{Self: func() Hello { return self }, Listener: ln, Handler: b, TLS: tlsOf(name), Registerer: prometheus.NewRegistry()}
		if name == "a" {
			c.Handler = a
		}
		l, err := New(c)
		if err != nil {
			tb.Fatal(err)
		}
		l.SetPeers([]Target{{Name: "a"}, {Name: "b", Addr: addr}})
		run(tb, l)
		addr = ln.Addr().String()
		la, lb = l, la
	}
	return la, lb
}

func plain(string) TLS { return nil }

func benchmarkCalls(b *testing.B, callers int, tlsOf func(string) TLS, waits bool) {
	c := &caller{waiting: map[uint32]chan struct{}{}, ready: make(chan *Peer, 2)}
	loopback(b, tlsOf, c, c)
	var p *Peer
	for range 2 {
		q := <-c.ready
		if q.Name() == "b" {
			p = q
		}
		if waits {
			q.outlet.raw = nil
		}
	}
	time.Sleep(10 * time.Millisecond)
	b.ReportAllocs()
	cpu := cpuTime()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			body, done := make([]byte, 64), make(chan struct{}, 1)
			for range b.N / callers {
				c.call(p, body, done)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N), "cpu-ns/op")
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// A call is 64 bytes, its reply 32; both ends are in this process.
func BenchmarkCall(b *testing.B) {
	for _, c := range []struct {
		name    string
		callers int
		waits   bool
	}{
		{"alone", 1, false},
		{"alone, by the writer", 1, true},
		{"64 callers", 64, false},
		{"64 callers, by the writer", 64, true},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkCalls(b, c.callers, plain, c.waits) })
	}
	s := secretSource(b, oldSecret)
	protected := func(string) TLS { return s }
	b.Run("alone, TLS", func(b *testing.B) { benchmarkCalls(b, 1, protected, false) })
	b.Run("64 callers, TLS", func(b *testing.B) { benchmarkCalls(b, 64, protected, false) })
}
