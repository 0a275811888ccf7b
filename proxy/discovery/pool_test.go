package discovery

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
	"kvca/state/virtualtime"
)

// The keeper beside the real pool and router: what is gone is waited for by the
// requests that are booked on it, and its slot is free afterwards.
func TestTheRealPoolFollows(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		blocks, err := blockmap.New(blockmap.Config{MaxBytes: 1 << 20, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		r, err := router.New(router.DefaultConfig(), router.LocalLoads(ledger.New(), "here"), blocks)
		if err != nil {
			t.Fatal(err)
		}
		nobody := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		pool, err := backend.NewPool(backend.PoolConfig{Dial: nobody, Zone: "here"}, r)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		s := &said{name: "source", sets: make(chan []backend.Config)}
		k := NewKeeper(pool, []Source{s}, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx) }()
		defer func() { cancel(); <-done }()
		want := func(want string) {
			t.Helper()
			synctest.Wait()
			var parts []string
			for _, b := range pool.Status() {
				parts = append(parts, b.ID+" "+b.Health+" "+b.Zone)
			}
			if got := strings.Join(parts, ", "); got != want {
				t.Fatalf("the pool has %q, want %q", got, want)
			}
		}
		far := config("far")
		far.Zone = "there"
		s.sets <- []backend.Config{far, config("near")}
		want("far unhealthy there, near unhealthy ")
		all := pool.All()
		if !all[0].Remote() || all[1].Remote() {
			t.Errorf("remote: %v, %v", all[0].Remote(), all[1].Remote())
		}
		ticket, err := r.Route(ctx, &router.Request{Model: "m", Bytes: 100}, all[:1])
		if err != nil {
			t.Fatal(err)
		}
		s.say("near")
		later(20 * time.Second)
		want("far draining there, near unhealthy ")
		ticket.Close()
		later(2 * time.Second)
		want("near unhealthy ")
		s.say("near", "next")
		want("near unhealthy , next unhealthy ")
	})
}
