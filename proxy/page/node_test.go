package page_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/proxy"
	"kvca/proxy/backend"
	"kvca/proxy/live"
	"kvca/proxy/page"
	"kvca/proxy/record"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

func init() { page.RealNode = realNode }

// engine answers as an inference server does.
func engine(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
	case "/v1/models":
		io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"test"}]}`)
	case "/v1/chat/completions":
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"prompt_tokens_details":{"cached_tokens":60}}}`)
	default:
		http.NotFound(w, r)
	}
}

func realNode(t *testing.T) string {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	registry, loads := prometheus.NewRegistry(), ledger.New()
	log := slog.New(slog.DiscardHandler)
	blocks, err := blockmap.New(blockmap.Config{MaxBytes: 16 << 20, TTL: time.Minute})
	check(err)
	routes, err := router.New(router.DefaultConfig(), router.LocalLoads(loads, "gw-1"), blocks)
	check(err)
	pool, err := backend.NewPool(backend.PoolConfig{HealthInterval: 50 * time.Millisecond, SlowStart: -1, Logger: log, Registerer: registry}, routes)
	check(err)
	t.Cleanup(pool.Close)
	seen := live.New(live.Config{})
	cfg := proxy.DefaultConfig()
	cfg.Node, cfg.Logger, cfg.Registerer, cfg.Observers = "gw-1", log, registry, []record.Observer{seen}
	p, err := proxy.New(cfg, routes, pool)
	check(err)
	for i := range 2 {
		e := httptest.NewServer(http.HandlerFunc(engine))
		t.Cleanup(e.Close)
		check(pool.Add(backend.Config{ID: fmt.Sprint("gpu-", i+1), URL: e.URL}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	check(pool.WaitReady(ctx))
	client := httptest.NewServer(p)
	t.Cleanup(client.Close)
	for range 3 {
		body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("a prompt of some length, ", 100) + `"}]}`
		resp, err := http.Post(client.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		check(err)
		resp.Body.Close()
	}
	admin := httptest.NewServer(proxy.NewAdmin(proxy.AdminConfig{Proxy: p, Map: blocks, Ledger: loads, Gatherer: registry, Live: seen}))
	t.Cleanup(admin.Close)
	return admin.URL
}
