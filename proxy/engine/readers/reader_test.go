package readers

import (
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/kvencode"
	"kvca/bench/publish"
	"kvca/proxy/engine/kvevent"
	"kvca/state"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is one of an index that remembers what was said of it.
type source struct {
	*kvindex.Source
	mu      sync.Mutex
	problem string
}

func (s *source) SetProblem(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = problem
}

func (s *source) told() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

// rig is a reader of one engine whose index is small.
type rig struct {
	t      *testing.T
	reader *Reader
	engine *publish.Publisher
	source *source
	other  *kvindex.Source // takes the index's memory
	work   sync.WaitGroup
}

func newRig(t *testing.T, replay string, room func(*kvindex.Index) func() bool) *rig {
	t.Helper()
	x, err := kvindex.New(kvindex.Config{Key: chain.Key{K0: 1, K1: 2}, MaxBytes: kvindex.MinBytes})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, other: open(t, x, 1), source: &source{Source: open(t, x, 2)}}
	r.engine, err = publish.New(publish.Config{Endpoint: "tcp://127.0.0.1:0", Bind: true, Replay: replay})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.engine.Close() })
	events := r.engine.Endpoint()
	if replay != "" {
		events += "," + r.engine.ReplayEndpoint()
	}
	r.reader = New(Config{
		Fleet: func() []Backend { return []Backend{{ID: "a", Events: events}} },
		Open:  func(string, int) (Source, error) { return r.source, nil },
		Room:  room(x),
	})
	t.Cleanup(func() {
		r.reader.stop(nil)
		r.work.Wait()
	})
	return r
}

func open(t *testing.T, x *kvindex.Index, slot state.Slot) *kvindex.Source {
	t.Helper()
	s, err := x.Open(kvindex.Origin{Slot: slot})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill takes all the memory there is.
func (r *rig) fill() {
	r.t.Helper()
	e := kvindex.Stored{Hashes: []uint64{0}, BlockSize: 1, Tokens: []uint32{0}}
	for i := uint32(1); !r.other.Stats().Partial; i++ {
		if i > 1<<22 {
			r.t.Fatal("the index is never full")
		}
		e.Hashes[0], e.Tokens[0] = uint64(i), i
		_ = r.other.Store(&e)
	}
}

func (r *rig) publish(blocks uint64) {
	for i := range blocks {
		e := kvencode.Event{Kind: kvevent.Stored, Hashes: []uint64{1<<40 + i}, BlockSize: 1, Tokens: []uint32{1<<30 + uint32(i)}, Medium: "GPU"}
		r.engine.Publish(kvencode.Append(nil, kvencode.VLLM(), &kvencode.Batch{HasRank: true, Events: []kvencode.Event{e}}))
	}
}

// until looks at the fleet again and again, as Run does once a second.
func (r *rig) until(what string, ok func(Status) bool) {
	r.t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		r.reader.look(r.t.Context(), &r.work)
		list := r.reader.Status()
		if len(list) == 1 && ok(list[0]) {
			return
		}
		if time.Since(begin) > 20*time.Second {
			r.t.Fatalf("waited in vain: %s\nstatus: %+v", what, list)
		}
	}
}

const blocks = 2000

// whole is whether all is known again, and nothing said against it.
func (r *rig) whole(s Status) bool {
	return s.Held.Blocks == blocks && !s.Held.Partial && s.Problem == "" && r.source.told() == "" && s.Feed.State == "live"
}

func (r *rig) partial(s Status) bool {
	return s.Held.Partial && s.Feed.State == "live" && s.Feed.Seq == blocks-1 &&
		strings.HasPrefix(s.Problem, "the index is full: ") && strings.Contains(s.Problem, "raise --max-kv-index-bytes") && r.source.told() == s.Problem
}

func below90(x *kvindex.Index) func() bool {
	return func() bool { s := x.Stats(); return s.Bytes < s.MaxBytes/10*9 }
}

func never(*kvindex.Index) func() bool { return nil }

func TestASourceThatWasNotGivenAllSaysSoAndHealsOnceThereIsRoom(t *testing.T) {
	r := newRig(t, "tcp://127.0.0.1:0", below90)
	r.fill()
	r.publish(blocks)
	r.until("partial", r.partial)
	r.other.Close()
	r.until("whole", r.whole)
	if s := r.reader.Status()[0]; s.Feed.Resets["resync"] != 1 {
		t.Errorf("resets %v, want one resync", s.Feed.Resets)
	}
}

func TestASourceWithoutRoomOrReplayStaysAsItIs(t *testing.T) {
	for name, r := range map[string]*rig{
		"nobody says there is room": newRig(t, "tcp://127.0.0.1:0", never),
		"no replay socket":          newRig(t, "", func(*kvindex.Index) func() bool { return func() bool { return true } }),
	} {
		r.until("read", func(s Status) bool { return s.Feed.State == "live" && r.engine.Subscribers() > 0 })
		r.fill()
		r.publish(blocks)
		r.until(name+": partial", r.partial)
		r.other.Close()
		for range 20 {
			r.reader.look(t.Context(), &r.work)
		}
		if s := r.reader.Status()[0]; s.Feed.Resets["resync"] != 0 || !r.partial(s) {
			t.Errorf("%s: status %+v, want no resync and the problem", name, s)
		}
	}
}

func TestHealingIsEverMoreRare(t *testing.T) {
	var h heal
	now := time.Now()
	var at []time.Duration
	for d := time.Duration(0); d < time.Hour; d += time.Second {
		if h.due(now.Add(d)) {
			at = append(at, d)
		}
	}
	want := []time.Duration{0, 30, 90, 210, 450, 930, 1530, 2130, 2730, 3330}
	if len(at) != len(want) {
		t.Fatalf("attempts at %v, want %d of them", at, len(want))
	}
	for i := range want {
		if at[i] != want[i]*time.Second {
			t.Errorf("attempt %d after %v, want %v", i, at[i], want[i]*time.Second)
		}
	}
	if later := now.Add(2 * time.Hour); !h.due(later) || h.due(later.Add(29*time.Second)) || !h.due(later.Add(30*time.Second)) {
		t.Error("after an hour of quiet the waits do not begin small again")
	}
}
