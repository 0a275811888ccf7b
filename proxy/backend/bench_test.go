package backend

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// sink is an engine that reads a request and answers in a few bytes.
func sink(tb testing.TB) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "ok")
	}))
	tb.Cleanup(s.Close)
	return s
}

var sizes = []int{2 << 10, 32 << 10, 400 << 10}

func BenchmarkDo(b *testing.B) {
	for _, size := range sizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			backend := onLoopback(b, PoolConfig{}, Config{URL: sink(b).URL, Models: []string{"m"}})
			body, header := bytes.Repeat([]byte("x"), size), http.Header{"Content-Type": {"application/json"}}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := backend.Do(b.Context(), http.MethodPost, "/v1/chat/completions", header, body)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

// BenchmarkPlainTransport is the floor: net/http alone.
func BenchmarkPlainTransport(b *testing.B) {
	for _, size := range sizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			url, transport := sink(b).URL, &http.Transport{DisableCompression: true}
			defer transport.CloseIdleConnections()
			body := bytes.Repeat([]byte("x"), size)
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := transport.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

// TestIdleCost measures what watching a hundred idle backends costs: run it with
// KVCA_IDLE_COST=30s. The engines are another process, this test again.
func TestIdleCost(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("KVCA_IDLE_COST"))
	if err != nil {
		t.Skip("set KVCA_IDLE_COST to a duration")
	}
	if address := os.Getenv("KVCA_IDLE_ENGINE"); address != "" {
		idleEngine(t, address, 2*span+time.Minute)
		return
	}
	address := freeAddress(t)
	engine := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestIdleCost$")
	engine.Env = append(os.Environ(), "KVCA_IDLE_ENGINE="+address)
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Wait() }()
	defer func() { _ = engine.Process.Kill() }()
	time.Sleep(time.Second)
	pool, err := NewPool(PoolConfig{}, newFakeSlots())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for i := range 100 {
		if err := pool.Add(Config{ID: fmt.Sprint(i), URL: "http://" + address}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(25 * time.Second) // until the scrapes have slowed down
	if got, _ := pool.Model("m"); len(got) != 100 {
		t.Fatalf("%d members", len(got))
	}
	before := processorTime(t)
	time.Sleep(span)
	t.Logf("%.4f cores for 100 backends", (processorTime(t)-before).Seconds()/span.Seconds())
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func idleEngine(t *testing.T, address string, life time.Duration) {
	e := &engine{health: 200, models: []string{"m"}, metrics: string(capture(t, "vllm_idle.txt")), hits: map[string]int{}}
	s := &http.Server{Addr: address, Handler: e}
	time.AfterFunc(life, func() { _ = s.Close() })
	_ = s.ListenAndServe()
}

func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
