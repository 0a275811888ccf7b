package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/bench/kvencode"
	"kvca/bench/publish"
	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
)

// holder is a sink that counts copies, as an index does.
type holder struct {
	mu     sync.Mutex
	copies map[string]int // of a hash in a tier
	resets int
	live   bool
}

func newHolder() *holder { return &holder{copies: map[string]int{}} }

func blockName(hash uint64, t kvindex.Tier) string { return fmt.Sprintf("%d@%s", hash, t) }

func (h *holder) Store(s *kvindex.Stored) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hash := range s.Hashes {
		h.copies[blockName(hash, s.Tier)]++
	}
	return nil
}

func (h *holder) Remove(hashes []uint64, t kvindex.Tier) (unknown int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hash := range hashes {
		switch name := blockName(hash, t); h.copies[name] {
		case 0:
			unknown++
		case 1:
			delete(h.copies, name)
		default:
			h.copies[name]--
		}
	}
	return unknown
}

func (h *holder) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.copies)
	h.resets++
}

func (h *holder) SetLive(live bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = live
}

// holds is what is known, in order; and whether that counts.
func (h *holder) holds() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(h.copies)), " "), h.live
}

func stored(hashes ...uint64) kvencode.Event {
	return kvencode.Event{Kind: kvevent.Stored, Hashes: hashes, BlockSize: 1, Tokens: make([]uint32, len(hashes)), Medium: "GPU"}
}

func removed(hashes ...uint64) kvencode.Event {
	return kvencode.Event{Kind: kvevent.Removed, Hashes: hashes, Medium: "GPU"}
}

func clearedEvent() kvencode.Event { return kvencode.Event{Kind: kvevent.Cleared} }

var clock float64

// payload is a batch as vLLM sends it; no two are the same, since a time is in it.
func payload(events ...kvencode.Event) []byte {
	clock++
	return kvencode.Append(nil, kvencode.VLLM(), &kvencode.Batch{Time: clock, HasRank: true, Events: events})
}

// rig is a feed between a simulated engine and a sink.
type rig struct {
	t    *testing.T
	pub  *publish.Publisher
	feed *Feed
	sink *holder
	stop func()
}

func publisher(t *testing.T, c publish.Config) *publish.Publisher {
	t.Helper()
	p, err := publish.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// engine binds both sockets; replay says whether there is the second.
func engine(t *testing.T, replay bool) *publish.Publisher {
	c := publish.Config{Endpoint: "tcp://127.0.0.1:0", Bind: true, Topic: "kv-events"}
	if replay {
		c.Replay = "tcp://127.0.0.1:0"
	}
	return publisher(t, c)
}

// run starts a feed of p; change may alter its configuration.
func run(t *testing.T, p *publish.Publisher, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, pub: p, sink: newHolder()}
	c := Config{Endpoint: p.Endpoint(), Replay: p.ReplayEndpoint(), Topic: "kv-", Sink: r.sink}
	if change != nil {
		change(&c)
	}
	var err error
	if r.feed, err = New(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.feed.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want %v", err, context.Canceled)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func (r *rig) publish(events ...kvencode.Event) { r.pub.Publish(payload(events...)) }

// until waits for what other goroutines do.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			holds, isLive := r.sink.holds()
			r.t.Fatalf("waited in vain: %s\nheld: %s, live %t\nstatus: %+v", what, holds, isLive, r.feed.Status())
		}
	}
}

// live waits until the source is synced with an engine that is listened to.
func (r *rig) live() {
	r.t.Helper()
	r.until("live", func() bool {
		_, isLive := r.sink.holds()
		return isLive && r.feed.Status().State == "live" && r.pub.Subscribers() > 0
	})
}

func (r *rig) untilHolds(want string) {
	r.t.Helper()
	r.until("holds "+want, func() bool {
		got, isLive := r.sink.holds()
		return isLive && got == want
	})
}
