package engine

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// BenchmarkStreams is the shell with its client in one process: streamed chats of 2 kB with 100 tokens of answer, 64 at a time,
// on an engine at 50 times its speed. Nearly all of the time is net/http's.
func BenchmarkStreams(b *testing.B) {
	b.ReportAllocs()
	s := NewServer(ServerConfig{Speedup: 50})
	s.Start(context.Background())
	defer s.Close()
	ts := httptest.NewServer(s)
	defer ts.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var id atomic.Uint64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := id.Add(1)
			body := fmt.Sprintf(`{"stream":true,"max_tokens":100,"messages":[{"role":"user","content":%q}]}`, words(500, n%100))
			resp, err := client.Post(ts.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
