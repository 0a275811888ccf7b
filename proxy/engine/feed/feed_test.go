package feed

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"kvca/bench/publish"
	"kvca/state"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

func TestAnEngineThatWasThereBeforeUsIsKnownInWhole(t *testing.T) {
	p := engine(t, true)
	p.Publish(payload(stored(1, 2, 3)))
	p.Publish(payload(removed(2)))
	r := run(t, p, nil)
	r.untilHolds("1@gpu 3@gpu")
	r.live()
	r.publish(stored(4))
	r.untilHolds("1@gpu 3@gpu 4@gpu")
	if s := r.feed.Status(); s.Problem != "" || s.Batches != 3 || s.Seq != 2 || s.Events != 3 || s.Last.IsZero() {
		t.Errorf("status %+v", s)
	}
}

func TestAnEngineThatComesAfterUsIsKnownInWhole(t *testing.T) {
	for _, old := range []bool{false, true} {
		events, replay := freePort(t), freePort(t)
		absent := publisher(t, publish.Config{Endpoint: events, Bind: true, Replay: replay})
		absent.Close()
		r := run(t, absent, func(c *Config) { c.Endpoint, c.Replay = events, replay })
		r.pub = publisher(t, publish.Config{Endpoint: events, Bind: true, Replay: replay, Topic: "kv-events", OldReplay: old})
		r.publish(stored(1))
		r.untilHolds("1@gpu")
		r.live()
		r.publish(stored(2))
		r.untilHolds("1@gpu 2@gpu")
	}
}

func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "tcp://" + l.Addr().String()
}

func TestOldRepliesAreReadAlike(t *testing.T) {
	p := publisher(t, publish.Config{Endpoint: "tcp://127.0.0.1:0", Bind: true, Replay: "tcp://127.0.0.1:0", Topic: "kv-events", OldReplay: true})
	for i := range uint64(3) {
		p.Publish(payload(stored(i)))
	}
	run(t, p, nil).untilHolds("0@gpu 1@gpu 2@gpu")
}

func TestARestartIsForgottenAndLearnedAnew(t *testing.T) {
	for _, replay := range []bool{true, false} {
		r := run(t, engine(t, replay), nil)
		r.live()
		for i := range uint64(3) {
			r.publish(stored(i))
		}
		r.untilHolds("0@gpu 1@gpu 2@gpu")
		r.pub.Restart()
		if replay {
			r.publish(stored(7)) // before we are back
		} else {
			r.until("back", func() bool { return r.pub.Subscribers() > 0 })
			r.publish(stored(7))
		}
		r.untilHolds("7@gpu")
		r.live()
		if s := r.feed.Status(); s.Resets["restart"] != 1 {
			t.Errorf("replay %t: resets %v, want one restart", replay, s.Resets)
		}
	}
}

func TestAGapIsFilledByAReplay(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.publish(stored(1, 2))
	r.fault(publish.Lost, 2)
	r.publish(removed(1))
	r.publish(stored(3))
	r.publish(stored(4))
	r.untilHolds("2@gpu 3@gpu 4@gpu")
	r.live()
	if s := r.feed.Status(); s.Gaps != 1 || s.Resets["gap"] != 0 || s.Problem != "" {
		t.Errorf("status %+v, want one gap, filled", s)
	}
}

func (r *rig) fault(kind publish.Fault, n int) {
	r.t.Helper()
	if err := r.pub.Fault(kind, n); err != nil {
		r.t.Fatal(err)
	}
}

func TestAGapThatNobodyCanFillIsAReset(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.publish(stored(1, 2))
	r.fault(publish.Hole, 1)
	r.publish(removed(1))
	r.publish(stored(4))
	r.untilHolds("4@gpu")
	r.live()
	if s := r.feed.Status(); s.Resets["gap"] != 1 || !strings.Contains(s.Problem, "batch 2 came, expected 1") {
		t.Errorf("status %+v, want a reset for the gap", s)
	}
}

func TestAGapWithoutAReplaySocketIsAReset(t *testing.T) {
	r := run(t, engine(t, false), nil)
	r.live()
	r.publish(stored(1, 2))
	r.fault(publish.Lost, 1)
	r.publish(removed(1))
	r.publish(stored(4))
	r.untilHolds("4@gpu")
	if s := r.feed.Status(); s.Resets["gap"] != 1 || !strings.Contains(s.Problem, "replay_endpoint") {
		t.Errorf("status %+v, want a reset for the gap", s)
	}
}

func TestARingThatWrappedIsTakenAsItIs(t *testing.T) {
	p := publisher(t, publish.Config{Endpoint: "tcp://127.0.0.1:0", Bind: true, Replay: "tcp://127.0.0.1:0", Topic: "kv-events", Buffer: 2})
	for i := range uint64(5) {
		p.Publish(payload(stored(i)))
	}
	r := run(t, p, nil)
	r.untilHolds("3@gpu 4@gpu")
	r.live()
	if s := r.feed.Status(); !strings.Contains(s.Problem, "began at batch 3") {
		t.Errorf("problem %q, want that the ring began late", s.Problem)
	}
}

func TestBatchesTwiceAndSwappedEndRight(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.fault(publish.Twice, 3)
	for i := range uint64(3) {
		r.publish(stored(i))
	}
	r.untilHolds("0@gpu 1@gpu 2@gpu")
	r.fault(publish.Swapped, 1)
	r.publish(removed(0))
	r.publish(stored(0))
	r.publish(removed(1))
	r.untilHolds("0@gpu 2@gpu")
}

func TestAReplayThatBreaksOffIsTakenUpAgain(t *testing.T) {
	p := engine(t, true)
	if err := p.Fault(publish.ShortReplay, 2); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(8) {
		p.Publish(payload(stored(i)))
	}
	r := run(t, p, func(c *Config) { c.stallAfter = 50 * time.Millisecond })
	r.untilHolds("0@gpu 1@gpu 2@gpu 3@gpu 4@gpu 5@gpu 6@gpu 7@gpu")
	if s := r.feed.Status(); s.Replays < 3 {
		t.Errorf("%d replays, want 3", s.Replays)
	}
}

func TestGarbageIsAResetAndSaid(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.publish(stored(1))
	r.pub.Publish([]byte("no batch"))
	r.publish(stored(2))
	r.untilHolds("2@gpu")
	if s := r.feed.Status(); s.Damaged != 1 || s.Resets["damaged"] != 1 || !strings.Contains(s.Problem, "batch 1 could not be read") {
		t.Errorf("status %+v, want one damaged batch", s)
	}
}

func TestASocketThatSpeaksNoZMTPIsAProblem(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\nthis is another kind of server altogether, and it says so at length")
			c.Close()
		}
	}()
	r := run(t, engine(t, false), func(c *Config) {
		c.Endpoint, c.DownAfter = "tcp://"+l.Addr().String(), 10*time.Millisecond
	})
	r.until("a problem", func() bool {
		s := r.feed.Status()
		return s.State == "connecting" && strings.Contains(s.Problem, "no event socket at") && strings.Contains(s.Problem, "(")
	})
}

func TestAnEngineThatConnectsToUsIsHeard(t *testing.T) {
	at := freePort(t)
	p := publisher(t, publish.Config{Endpoint: at, Replay: "tcp://127.0.0.1:0", Topic: "kv-events"})
	r := run(t, p, func(c *Config) { c.Endpoint, c.Bind = at, true })
	r.live()
	r.publish(stored(1))
	r.untilHolds("1@gpu")
}

func TestOfTwoEnginesAtOneEndpointTheNewestIsHeard(t *testing.T) {
	at := freePort(t)
	first := publisher(t, publish.Config{Endpoint: at, Topic: "kv-events"})
	r := run(t, first, func(c *Config) { c.Endpoint, c.Bind = at, true })
	r.live()
	r.publish(stored(1))
	r.untilHolds("1@gpu")

	second := publisher(t, publish.Config{Endpoint: at, Topic: "kv-events"})
	r.until("the second has subscribers", func() bool { return second.Subscribers() > 0 })
	second.Publish(payload(stored(7)))
	second.Publish(payload(stored(8)))
	r.untilHolds("7@gpu 8@gpu")
	r.publish(stored(2))
	r.until("a problem", func() bool { return strings.Contains(r.feed.Status().Problem, "another engine") })
	r.untilHolds("7@gpu 8@gpu")

	second.Close()
	r.until("nobody else's", func() bool { return !strings.Contains(r.feed.Status().Problem, "another engine") })
	r.publish(stored(3))
	r.untilHolds("3@gpu")
	first.Close()
	r.until("down", func() bool { return r.feed.Status().State == "connecting" })
}

func TestADeadEngineIsForgotten(t *testing.T) {
	p := engine(t, true)
	r := run(t, p, func(c *Config) { c.DownAfter = 50 * time.Millisecond })
	r.live()
	r.publish(stored(1))
	r.untilHolds("1@gpu")
	p.Close()
	r.until("forgotten", func() bool {
		holds, isLive := r.sink.holds()
		return !isLive && holds == "" && r.feed.Status().Resets["down"] == 1 && strings.Contains(r.feed.Status().Problem, "no event socket at")
	})
}

func TestAFeedThatEndsLeavesASinkThatClaimsNothing(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.publish(stored(1))
	r.untilHolds("1@gpu")
	r.stop()
	if holds, isLive := r.sink.holds(); isLive || holds != "" {
		t.Errorf("holds %q, live %t, want nothing", holds, isLive)
	}
}

func TestSilenceIsNoticedThroughExpect(t *testing.T) {
	r := run(t, engine(t, false), func(c *Config) { c.SilentAfter = 20 * time.Millisecond })
	r.live()
	for range expectedLeast {
		r.feed.Expect()
	}
	r.until("silent", func() bool { return r.feed.Status().Silent })
	r.publish(stored(1))
	r.until("not silent", func() bool { return !r.feed.Status().Silent })
}

func TestVoidForgets(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.publish(stored(1))
	r.untilHolds("1@gpu")
	r.feed.Void()
	r.untilHolds("")
	r.publish(stored(2))
	r.untilHolds("2@gpu")
}

func TestResyncBringsWhatTheSinkLost(t *testing.T) {
	r := run(t, engine(t, true), nil)
	r.live()
	r.publish(stored(1))
	r.publish(stored(2))
	r.untilHolds("1@gpu 2@gpu")
	r.sink.Reset()
	r.feed.Resync()
	r.untilHolds("1@gpu 2@gpu")
	r.live()
	if s := r.feed.Status(); s.Resets["resync"] != 1 || s.Problem != "" {
		t.Errorf("status %+v, want one reset for the resync", s)
	}
}

// A worker that is kept busy has batches dropped, and gets them by a replay.
func TestAQueueThatOverflowsIsHealed(t *testing.T) {
	p := engine(t, true)
	slow := &slowSink{holder: newHolder(), gate: make(chan struct{})}
	r := run(t, p, func(c *Config) { c.MaxQueue, c.Sink = 4096, slow })
	r.sink = slow.holder
	r.live()
	for i := range uint64(200) {
		r.publish(stored(i))
	}
	r.until("drops", func() bool { return r.feed.inbox.droppedNow() > 0 })
	close(slow.gate)
	r.until("all held", func() bool {
		holds, _ := r.sink.holds()
		return len(strings.Fields(holds)) == 200
	})
	r.live()
	s := r.feed.Status()
	if s.Dropped == 0 || s.Gaps == 0 || s.Resets["gap"] != 0 {
		t.Errorf("status %+v, want drops, and gaps that were filled", s)
	}
}

func (b *inbox) droppedNow() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

type slowSink struct {
	*holder
	gate chan struct{}
}

func (s *slowSink) Store(e *kvindex.Stored) error {
	<-s.gate
	return s.holder.Store(e)
}

// With a real index, what an engine stores is found by its tokens.
func TestAnIndexIsFed(t *testing.T) {
	x, err := kvindex.New(kvindex.Config{Key: chain.Key{K0: 1, K1: 2}, MaxBytes: kvindex.MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	source, err := x.Open(kvindex.Origin{Slot: 3, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, engine(t, true), func(c *Config) { c.Sink = source })
	e := stored(11, 12)
	e.BlockSize, e.Tokens = 2, []uint32{1, 2, 3, 4}
	r.publish(e)
	prompt := kvindex.Prompt{Tokens: []uint32{1, 2, 3, 4, 5}}
	r.until("a match", func() bool {
		var found kvindex.Result
		x.Lookup(&prompt, &found)
		m, ok := found.Of(state.Slot(3))
		return ok && m.Tokens == 4
	})
	r.stop()
	if x.Heard(3) {
		t.Error("a feed that has ended is still heard")
	}
}

func TestAllFaultsOfAConfigurationAreNamedAtOnce(t *testing.T) {
	_, err := New(Config{Endpoint: "5557", Replay: "tcp://*:5657", DownAfter: -1, SilentAfter: -1, MaxQueue: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"events", "replay", "sink", "down after", "silent after", "max queue"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
}
