package link

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/cluster/secret"
)

// Over real sockets, where a sender writes by itself.

func secretSource(tb testing.TB, content string) *secret.Source {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	s, err := secret.Open(path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

const (
	oldSecret = "the old secret of the cluster"
	newSecret = "the new secret of the cluster"
)

// eventually waits for what real sockets take a while to bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 20 s: %s", what)
		}
	}
}

func TestAllFramesArriveWhoeverWrites(t *testing.T) {
	for name, tlsOf := range map[string]func(string) TLS{
		"plain": plain,
		"TLS": func() func(string) TLS {
			s := secretSource(t, oldSecret)
			return func(string) TLS { return s }
		}(),
	} {
		t.Run(name, func(t *testing.T) { testAllFramesArrive(t, tlsOf) })
	}
}

// Several senders on all lanes and a reader that is slow at times: attempts are
// taken in part, refused, and mixed with the writer's.
func testAllFramesArrive(t *testing.T, tlsOf func(string) TLS) {
	const senders, frames = 6, 400
	got := &numbered{next: map[byte]uint32{}}
	sender := &recorder{}
	loopback(t, tlsOf, sender, got)
	eventually(t, "a link", func() bool { return sender.seen() != "" })
	p := sender.peer(t)
	if tcp, ok := p.conn.(*net.TCPConn); ok {
		tcp.SetWriteBuffer(8 << 10)
	}
	var wg sync.WaitGroup
	for i := range senders {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for n := range uint32(frames) {
				body := bytes.Repeat([]byte{byte(n)}, []int{10, 100, 5000, 20000}[r.IntN(4)])
				for !p.Send(Lane(i%lanes), byte(i), binary.LittleEndian.AppendUint32(nil, n), body) {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all frames", func() bool { return got.count() == senders*frames })
	if fault := got.fault(); fault != "" {
		t.Error(fault)
	}
}

// numbered checks that each kind's frames come in order and whole.
type numbered struct {
	recorder
	next map[byte]uint32
	bad  string
	n    int
}

func (c *numbered) Frame(_ *Peer, kind byte, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := binary.LittleEndian.Uint32(body)
	if n != c.next[kind] || len(bytes.Trim(body[4:], string([]byte{byte(n)}))) != 0 {
		c.bad = fmt.Sprintf("sender %d: frame %d where %d was due, or broken", kind, n, c.next[kind])
	}
	c.next[kind] = n + 1
	if c.n++; c.n%100 == 0 {
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *numbered) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *numbered) fault() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bad
}

func TestAnotherSecretMakesNoLink(t *testing.T) {
	a, b := &recorder{}, &recorder{}
	ours, theirs := secretSource(t, oldSecret), secretSource(t, newSecret)
	la, lb := loopback(t, func(name string) TLS {
		if name == "a" {
			return ours
		}
		return theirs
	}, a, b)
	eventually(t, "failures", func() bool { return counted(t, la) > 1 && counted(t, lb) > 1 })
	if a.seen() != "" || b.seen() != "" {
		t.Errorf("a: %s, b: %s", a.seen(), b.seen())
	}
}

func counted(t *testing.T, l *Links) float64 {
	return metric(t, l.c.Registerer.(prometheus.Gatherer), "kvca_link_handshake_failures_total")
}

// switched gives whatever keys are set at the moment, as a watched file does.
type switched struct {
	mu sync.Mutex
	TLS
}

func (s *switched) now() TLS {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.TLS
}

func (s *switched) set(t TLS) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.TLS = t
}

func (s *switched) Server() *tls.Config { return s.now().Server() }
func (s *switched) Client() *tls.Config { return s.now().Client() }

func TestSecretIsRotatedWithoutAnInterruption(t *testing.T) {
	before := secretSource(t, oldSecret)
	keys := map[string]*switched{"a": {TLS: before}, "b": {TLS: before}}
	a, b := &recorder{}, &recorder{}
	la, _ := loopback(t, func(name string) TLS { return keys[name] }, a, b)
	up := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprintf("link %d", n), func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return len(a.peers) == 1 && len(a.events) == 2*n-1
		})
	}
	up(1)
	links := 1
	for _, step := range []string{oldSecret + "\n" + newSecret, newSecret + "\n" + oldSecret, newSecret} {
		for _, name := range []string{"a", "b"} {
			first := a.peer(t)
			keys[name].set(secretSource(t, step))
			if !first.Send(Urgent, 1, []byte("still there")) || first.hasEnded() {
				t.Fatal("a change of keys ended a link")
			}
			// One node has changed and the other has not yet: they must still
			// come together.
			first.Close(nil)
			links++
			up(links)
		}
	}
	if n := counted(t, la); n != 0 {
		t.Errorf("%v handshakes failed", n)
	}
}
