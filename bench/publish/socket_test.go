package publish

import (
	"context"
	"encoding/binary"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kvca/proxy/engine/zmtp"
)

// The same over the kernel's sockets as the other tests have in memory.
func TestRealSocketsCarryBatchesAndReplays(t *testing.T) {
	endpoints := map[string]struct{ endpoint, replay string }{
		"tcp": {"tcp://*:0", "tcp://127.0.0.1:0"},
		"ipc": {"ipc://" + filepath.Join(t.TempDir(), "pub"), "ipc://" + filepath.Join(t.TempDir(), "router")},
	}
	for name, c := range endpoints {
		t.Run(name, func(t *testing.T) {
			p := opened(t, Config{Endpoint: c.endpoint, Replay: c.replay})
			e := &ear{}
			listen(t, zmtp.Config{Endpoint: p.Endpoint()}, e)
			e.hears(up)
			awaitSubscriber(t, p)
			publish(p, 0, 3)
			e.hears(0, 1, 2)
			d, err := zmtp.Dial(t.Context(), zmtp.Config{Endpoint: p.ReplayEndpoint()}, "DEALER")
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ask(t, d, 1)
			if got := replayed(t, d); len(got) != 2 {
				t.Errorf("replayed %d: want 1 and 2", got)
			}
			p.Restart()
			e.hears(down, up)
		})
	}
}

// last is a Handler that tells when a number was reached.
type last struct {
	number  uint64
	reached chan struct{}
}

func (*last) Connected(*zmtp.Conn)           {}
func (*last) Disconnected(*zmtp.Conn, error) {}

func (l *last) Message(_ *zmtp.Conn, frames [][]byte) {
	if binary.BigEndian.Uint64(frames[1]) == l.number {
		close(l.reached)
	}
}

// One operation is one batch of 512 bytes, through both sides over loopback.
func BenchmarkBatch(b *testing.B) {
	p, err := New(Config{Endpoint: "tcp://*:0", Queue: b.N + 1, Topic: topic})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	l := &last{number: uint64(b.N - 1), reached: make(chan struct{})}
	ctx, cancel := context.WithCancel(b.Context())
	var subscriber sync.WaitGroup
	subscriber.Go(func() { _ = zmtp.Subscribe(ctx, zmtp.Config{Endpoint: p.Endpoint()}, l) })
	defer subscriber.Wait()
	defer cancel()
	for p.Subscribers() == 0 {
		time.Sleep(time.Millisecond)
	}
	batch := make([]byte, 512)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		p.Publish(batch)
	}
	<-l.reached
	b.StopTimer()
}
