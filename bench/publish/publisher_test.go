package publish

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvca/proxy/engine/zmtp"
)

const (
	endpoint = "tcp://*:5557"
	replays  = "tcp://*:5558"
	topic    = "kv-events"
)

func (w *world) subscriber(p *Publisher) zmtp.Config {
	return zmtp.Config{Endpoint: p.Endpoint(), Subscribe: []string{"kv"}, Dial: dialFrom(w.gateway)}
}

func TestSubscribersHearWhatIsPublishedInEitherDirection(t *testing.T) {
	t.Run("publisher binds", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			p := w.publisher(Config{Endpoint: endpoint, Topic: topic})
			a, b := &ear{}, &ear{}
			listen(t, w.subscriber(p), a)
			listen(t, w.subscriber(p), b)
			synctest.Wait()
			publish(p, 0, 3)
			a.hears(up, 0, 1, 2)
			b.hears(up, 0, 1, 2)
			p.Close()
			a.hears(down)
		})
	})
	t.Run("publisher connects", func(t *testing.T) {
		bubble(t, func(t *testing.T, w *world) {
			p := w.publisher(Config{Endpoint: "tcp://gateway:5557", Topic: topic})
			time.Sleep(time.Minute) // an engine may be up long before who listens
			e := &ear{}
			listen(t, zmtp.Config{Endpoint: endpoint, Bind: true, Listen: listenAt(w.gateway, 5557)}, e)
			e.hears(up)
			synctest.Wait()
			publish(p, 0, 3)
			e.hears(0, 1, 2)
			p.Restart()
			e.hears(down, up)
			synctest.Wait()
			publish(p, 0, 2)
			e.hears(0, 1)
		})
	})
}

func TestOnlySubscribedTopicsAreHeard(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Topic: topic})
		c := w.subscriber(p)
		c.Subscribe = []string{"other", "kv-events-2"}
		e := &ear{}
		listen(t, c, e)
		e.hears(up)
		synctest.Wait()
		publish(p, 0, 3)
		e.silence()
		if n := p.Subscribers(); n != 0 {
			t.Errorf("%d subscribers of the topic: want none", n)
		}
	})
}

func TestFaults(t *testing.T) {
	cases := map[Fault]struct{ live, kept []uint64 }{
		Lost:    {[]uint64{0, 3, 4, 5}, []uint64{0, 1, 2, 3, 4, 5}},
		Hole:    {[]uint64{0, 3, 4, 5}, []uint64{0, 3, 4, 5}},
		Twice:   {[]uint64{0, 1, 1, 2, 2, 3, 4, 5}, []uint64{0, 1, 2, 3, 4, 5}},
		Swapped: {[]uint64{0, 2, 1, 4, 3, 5}, []uint64{0, 1, 2, 3, 4, 5}},
	}
	for kind, c := range cases {
		t.Run(string(kind), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic})
				e := &ear{}
				listen(t, w.subscriber(p), e)
				e.hears(up)
				synctest.Wait()
				publish(p, 0, 1)
				if err := p.Fault(kind, 2); err != nil {
					t.Fatal(err)
				}
				publish(p, 1, 6)
				e.hears(c.live...)
				e.silence()
				d := w.dealer(p)
				ask(t, d, 0)
				if got := replayed(t, d); !slices.Equal(got, c.kept) {
					t.Errorf("replayed %d: want %d", got, c.kept)
				}
			})
		})
	}
}

func TestUnknownFaultsAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint})
		for kind, n := range map[Fault]int{"melted": 1, Lost: 0, Hole: -1, Twice: maxArmed + 1} {
			if err := p.Fault(kind, n); err == nil {
				t.Errorf("fault %q, %d times, was armed: want an error", kind, n)
			}
		}
	})
}

func TestRestartBeginsAnew(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic})
		e := &ear{}
		listen(t, w.subscriber(p), e)
		e.hears(up)
		synctest.Wait()
		publish(p, 0, 3)
		e.hears(0, 1, 2)
		d := w.dealer(p)
		if err := p.Fault(Swapped, 1); err != nil {
			t.Fatal(err)
		}
		publish(p, 3, 4) // held for a partner that must not come from the next life
		p.Restart()
		if _, err := d.Receive(); err == nil {
			t.Error("a replay's connection outlived the restart: want it cut")
		}
		e.hears(down, up)
		synctest.Wait()
		d = w.dealer(p)
		ask(t, d, 0)
		if got := replayed(t, d); len(got) != 0 {
			t.Errorf("replayed %d after a restart: want nothing", got)
		}
		publish(p, 0, 2)
		e.hears(0, 1)
		e.silence()
	})
}

func TestReplays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic, Buffer: 4})
		publish(p, 0, 10)
		d := w.dealer(p)
		cases := []struct {
			start uint64
			want  []uint64
		}{{0, []uint64{6, 7, 8, 9}}, {8, []uint64{8, 9}}, {10, nil}, {up, nil}}
		for _, c := range cases {
			ask(t, d, c.start)
			if got := replayed(t, d); !slices.Equal(got, c.want) {
				t.Errorf("replay from %d: %d: want %d", c.start, got, c.want)
			}
		}
	})
}

func TestReplayOfTheOldForm(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic, OldReplay: true})
		publish(p, 0, 1)
		d := w.dealer(p)
		ask(t, d, 0)
		want := [][]string{{"", strings.Repeat("\x00", 8), "batch 0"}, {"", strings.Repeat("\xff", 8), ""}}
		for _, reply := range want {
			frames, err := d.Receive()
			var got []string
			for _, f := range frames {
				got = append(got, string(f))
			}
			if err != nil || !slices.Equal(got, reply) {
				t.Errorf("reply %q, %v: want %q", got, err, reply)
			}
		}
	})
}

func TestRequestsOfAnotherFormGetNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic})
		publish(p, 0, 1)
		d := w.dealer(p)
		number := make([]byte, 8)
		for _, request := range [][][]byte{{number}, {nil, number, nil}, {number, number}, {nil, number[1:]}} {
			if err := d.Send(request...); err != nil {
				t.Fatal(err)
			}
		}
		ask(t, d, 1)
		if got := replayed(t, d); len(got) != 0 {
			t.Errorf("replayed %d: want only the end that the last request has", got)
		}
	})
}

func TestShortReplayBreaksOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic})
		publish(p, 0, 4)
		if err := p.Fault(ShortReplay, 1); err != nil {
			t.Fatal(err)
		}
		d := w.dealer(p)
		ask(t, d, 0)
		for want := range uint64(2) {
			frames, err := d.Receive()
			if err != nil || binary.BigEndian.Uint64(frames[2]) != want {
				t.Fatalf("reply %q, %v: want batch %d", frames, err, want)
			}
		}
		ask(t, d, 3)
		if got := replayed(t, d); !slices.Equal(got, []uint64{3}) {
			t.Errorf("after a replay that broke off came %d: want batch 3 of the next request", got)
		}
		if _, err := d.Receive(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("then came %v: want nothing", err)
		}
	})
}

// As in vLLM, whose publisher has one thread: a client that doesn't read its
// replay keeps others waiting, until it is cut off.
func TestOneReplayIsSentAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Replay: replays, Topic: topic})
		publish(p, 0, 10_000)
		slow, quick := w.dealer(p), w.dealer(p)
		ask(t, slow, 0)
		synctest.Wait()
		start := time.Now()
		ask(t, quick, 9_999)
		if got := replayed(t, quick); !slices.Equal(got, []uint64{9_999}) {
			t.Errorf("replayed %d: want 9999", got)
		}
		if waited := time.Since(start); waited < time.Second || waited > 10*time.Second {
			t.Errorf("a second replay waited %v: want as long as the first was stuck, 5 s", waited)
		}
	})
}

func TestSlowSubscriberMissesBatchesAndGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		p := w.publisher(Config{Endpoint: endpoint, Topic: topic, Queue: 10})
		e := &ear{block: make(chan struct{})}
		listen(t, w.subscriber(p), e)
		e.hears(up)
		synctest.Wait()
		const batches = 20_000 // more than the sockets between hold
		for i := range batches {
			publish(p, i, i+1)
			if i%5 == 0 {
				synctest.Wait()
			}
		}
		if p.Dropped() == 0 {
			t.Fatalf("nothing was dropped of %d batches for a subscriber that doesn't read", batches)
		}
		close(e.block)
		time.Sleep(time.Second)
		heard := len(e.heard)
		if uint64(heard)+p.Dropped() != batches {
			t.Errorf("heard %d and dropped %d: want %d together", heard, p.Dropped(), batches)
		}
		for range heard {
			<-e.heard
		}
		publish(p, batches, batches+1)
		e.hears(batches)
	})
}

func TestBoundByTheRuleOfTheEngine(t *testing.T) {
	cases := map[string]bool{
		"tcp://*:5557":         true,
		"tcp://[::]:5557":      true,
		"tcp://::1:5557":       true,
		"ipc:///run/kv":        true,
		"tcp://0.0.0.0:5557":   false, // to nobody, as many have found out
		"tcp://127.0.0.1:5557": false,
		"tcp://gateway:5557":   false,
	}
	for endpoint, want := range cases {
		if got := (Config{Endpoint: endpoint}).binds(); got != want {
			t.Errorf("%s is bound: %v: want %v", endpoint, got, want)
		}
	}
}

func TestAllFaultsOfAConfigurationAreToldAtOnce(t *testing.T) {
	p, err := New(Config{Endpoint: "http://x", Replay: "tcp://nowhere", Buffer: -1})
	if err == nil {
		p.Close()
		t.Fatal("it was made: want its faults")
	}
	for _, key := range []string{"endpoint:", "replay:", "buffer"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("faults %q don't name %q", err, key)
		}
	}
}
