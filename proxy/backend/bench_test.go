package backend

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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

// TestIdleCost measures what watching a hundred idle backends costs. The engines
// share the process, so that about half of it is theirs. Run it with
// KVCA_IDLE_COST=30s.
func TestIdleCost(t *testing.T) {
	span, err := time.ParseDuration(os.Getenv("KVCA_IDLE_COST"))
	if err != nil {
		t.Skip("set KVCA_IDLE_COST to a duration")
	}
	metrics := capture(t, "vllm_idle.txt")
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = w.Write(metrics)
		}
	}))
	defer engine.Close()
	pool, err := NewPool(PoolConfig{}, newFakeSlots())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for i := range 100 {
		if err := pool.Add(Config{ID: fmt.Sprint(i), URL: engine.URL, Models: []string{"m"}}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(25 * time.Second) // until the scrapes have slowed down
	before := processorTime(t)
	time.Sleep(span)
	t.Logf("%.4f cores for 100 backends and their engines", (processorTime(t)-before).Seconds()/span.Seconds())
}

func processorTime(t *testing.T) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		t.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
