package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fleet(t *testing.T, change func(*fake.Config)) (*fake.Fleet, string) {
	t.Helper()
	cfg := fake.DefaultConfig()
	change(&cfg)
	f, err := fake.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, strings.TrimPrefix(f.URLs()[0], "http://")
}

func TestQuantilesAreRightToThreePercent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	exact := make([]time.Duration, 10_000)
	for i := range exact {
		exact[i] = time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		h.Add(exact[i])
	}
	slices.Sort(exact)
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		want := exact[max(int(q*float64(len(exact)))-1, 0)]
		got := h.Quantile(q)
		if got < want || float64(got) > float64(want)*1.04 {
			t.Errorf("quantile %v = %v, exact %v", q, got, want)
		}
	}
	if h.Max() != exact[len(exact)-1] || h.Count() != 10_000 {
		t.Errorf("max %v count %d", h.Max(), h.Count())
	}
}

func TestBucketEdges(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 31, 32, 33, 63, 64, 1000, 123_456_789, 1 << 62} {
		i := bucket(d)
		if edge(i) < d || i > 0 && edge(i-1) >= d {
			t.Errorf("%d is in bucket %d, which ends at %d and begins after %d", d, i, edge(i), edge(i-1))
		}
	}
}

func TestChatHasTheLengthAskedFor(t *testing.T) {
	for _, n := range []int{2 << 10, 32 << 10, 400_000} {
		b := Chat("m", n, true, 1)
		if !json.Valid(b) || len(b) < n*9/10 || len(b) > n*11/10 {
			t.Errorf("%d bytes asked, got %d, valid %v", n, len(b), json.Valid(b))
		}
		if !bytes.Equal(b, Chat("m", n, true, 1)) || bytes.Equal(b, Chat("m", n, true, 2)) {
			t.Error("a chat must depend on its seed and on nothing else")
		}
	}
}

func TestDistinctPromptsDifferAndEnd(t *testing.T) {
	requests := Distinct("m", 2048, 1000, 7)
	a, b := requests(), requests()
	seen := map[string]bool{}
	for {
		one := a.next()
		if one == nil {
			break
		}
		seen[string(one)] = true
		if other := b.next(); other != nil {
			seen[string(other)] = true
		}
	}
	if len(seen) != 1000 {
		t.Errorf("%d distinct prompts, want 1000", len(seen))
	}
	for request := range seen {
		_, payload, _ := strings.Cut(request, "\r\n\r\n")
		if !json.Valid([]byte(payload)) {
			t.Fatalf("invalid body %.80s", payload)
		}
		break
	}
}

func TestConversationRepeatsWhatWasSaid(t *testing.T) {
	s := &Script{Model: "m", Conversations: 2, Turns: 3, SystemBytes: 100, Shared: true, UserBytes: 50, Seed: 3}
	a, b := newConversation(s, 0), newConversation(s, 1)
	first := a.ask()
	a.hear("answer \"one\"")
	second := a.ask()
	shared := bytes.TrimSuffix(first, []byte("]}"))
	if !bytes.HasPrefix(second, shared) || !json.Valid(second) || !bytes.Contains(second, []byte(`answer \"one\"`)) {
		t.Errorf("second turn %s does not continue %s", second, first)
	}
	if start := bytes.Index(first, []byte("[[conv=0 turn=0]]")); start < 100 || !bytes.HasPrefix(b.ask(), first[:start]) {
		t.Error("the system prompt is not shared")
	}
	if a.over() || b.over() {
		t.Error("a conversation of three turns is over early")
	}
}

func TestAffinityCountsKeptFollowUps(t *testing.T) {
	a := AffinityOf([]fake.Served{
		{Conversation: 0, Turn: 0, Backend: 1},
		{Conversation: 1, Turn: 0, Backend: 0},
		{Conversation: 0, Turn: 1, Backend: 1},
		{Conversation: 0, Turn: 2, Backend: 0},
	}, 2)
	if a.FollowUps != 2 || a.Kept != 1 || a.Share() != 0.5 || a.Spread() != 1 || !slices.Equal(a.Lost, []int{0, 1}) {
		t.Errorf("%+v, share %v, spread %v", a, a.Share(), a.Spread())
	}
}

func TestClosedLoopCountsEveryRequest(t *testing.T) {
	f, addr := fleet(t, func(c *fake.Config) { c.Backends = 1 })
	l := Closed{Addr: addr, Connections: 4, Requests: Distinct("fake", 2048, 500, 1), Duration: time.Minute, Timeout: time.Second}
	res := l.Run(t.Context())
	if res.OK != 500 || res.Failed != 0 || f.Stats().Backends[0].Requests != 500 {
		t.Errorf("%d ok, %d failed (%v), backend saw %d", res.OK, res.Failed, res.Err, f.Stats().Backends[0].Requests)
	}
}

func TestClosedLoopReportsFailures(t *testing.T) {
	l := Closed{Addr: "127.0.0.1:1", Connections: 1, Requests: Same([]byte("{}")), Duration: 30 * time.Millisecond, Timeout: time.Second}
	if res := l.Run(t.Context()); res.Failed == 0 || res.Err == nil {
		t.Errorf("nothing listens there, and the result is %d failed, %v", res.Failed, res.Err)
	}
}

func TestTalkPlaysEveryTurn(t *testing.T) {
	f, addr := fleet(t, func(c *fake.Config) { c.Backends = 1 })
	talk := Talk{
		Addrs: []string{addr, addr}, Connections: 3, Timeout: time.Second,
		Script: Script{Model: "fake", Conversations: 7, Turns: 4, UserBytes: 60, Seed: 1},
	}
	res := talk.Run(t.Context())
	a := AffinityOf(f.Stats().Served, 1)
	if res.OK != 28 || res.Failed != 0 || a.FollowUps != 21 || a.Kept != 21 {
		t.Errorf("%d ok, %d failed (%v), %+v", res.OK, res.Failed, res.Err, a)
	}
}

func TestLeaversAreSeenToLeave(t *testing.T) {
	f, addr := fleet(t, func(c *fake.Config) {
		c.Backends, c.Delay, c.ChunkDelay = 1, 50*time.Millisecond, 5*time.Millisecond
	})
	leavers := Leave{
		Addr: addr, Model: "fake", Clients: 60, Connections: 20, BodyBytes: 4096,
		Prefill: 50 * time.Millisecond, StreamFor: 100 * time.Millisecond, Timeout: time.Second, Seed: 1,
	}.Run(t.Context())
	var left, finished int
	for i, v := range leavers {
		if v.Err != nil {
			t.Errorf("client %d in %v: %v", i, v.Stage, v.Err)
		}
		if v.Finished {
			finished++
		} else {
			left++
		}
	}
	if left < 40 || left+finished != 60 {
		t.Errorf("%d left, %d had their answer", left, finished)
	}
	if s := f.Stats().Backends[0]; s.Cancelled+s.Broken == 0 {
		t.Errorf("the backend saw nobody leave: %+v", s)
	}
}

func TestPacedLoopKeepsItsRate(t *testing.T) {
	f, addr := fleet(t, func(c *fake.Config) { c.Backends = 1 })
	l := Closed{Addr: addr, Connections: 4, Requests: Same(Chat("fake", 300, false, 1)), Rate: 100, Duration: 300 * time.Millisecond, Timeout: 5 * time.Second}
	res := l.Run(t.Context())
	if res.OK < 1 || res.OK > 31 || res.Failed != 0 || f.Stats().Backends[0].Requests != res.OK {
		t.Errorf("%d ok, %d failed (%v), want 30 at most", res.OK, res.Failed, res.Err)
	}
}

func TestBurstIsServedAtTheSameTime(t *testing.T) {
	f, addr := fleet(t, func(c *fake.Config) { c.Backends, c.Delay = 1, time.Second })
	b := Burst{Addrs: []string{addr, addr}, Timeout: 10 * time.Second}
	for i := range 12 {
		b.Bodies = append(b.Bodies, Chat("fake", 300, false, uint64(i)))
	}
	most := make(chan int64, 1)
	go func() {
		var seen int64
		for f.Stats().Backends[0].Requests < 12 || f.Stats().Backends[0].Active > 0 {
			seen = max(seen, f.Stats().Backends[0].Active)
			time.Sleep(time.Millisecond)
		}
		most <- seen
	}()
	res := b.Run(t.Context())
	if res.OK != 12 || res.Failed != 0 {
		t.Errorf("%d ok, %d failed (%v)", res.OK, res.Failed, res.Err)
	}
	if n := <-most; n != 12 {
		t.Errorf("%d at the same time, want 12", n)
	}
}

func TestHeldStreamsEndWhenTheirClientsLeave(t *testing.T) {
	f, addr := fleet(t, func(c *fake.Config) { c.Backends, c.ChunkDelay = 1, time.Minute })
	h, err := Hold(t.Context(), addr, [][]byte{Chat("fake", 300, true, 1), Chat("fake", 300, true, 2)}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if n := f.Stats().Backends[0].Active; n != 2 || h.Len() != 2 {
		t.Errorf("%d active, want 2", n)
	}
	h.Close()
	for f.Stats().Backends[0].Active > 0 {
		time.Sleep(time.Millisecond) // the test's own limit ends it
	}
	if _, err := Hold(t.Context(), "127.0.0.1:1", [][]byte{{}}, time.Second); err == nil {
		t.Error("nothing listens there, and a stream is held")
	}
}

func TestDistinctBodyIsWhatWasSent(t *testing.T) {
	src := Distinct("m", 1000, 5, 7)()
	for k := range int64(5) {
		sent := src.next()
		if want := Request(DistinctBody("m", 1000, k+1, 7)); !bytes.Equal(sent, want) {
			t.Fatalf("request %d is %s, want %s", k+1, sent, want)
		}
	}
	first := DistinctBody("m", 1000, 1, 7)
	next := FollowUp(first, "an answer", "a \"question\"")
	if !json.Valid(next) || !bytes.HasPrefix(next, bytes.TrimSuffix(first, []byte("]}"))) {
		t.Errorf("follow-up %s", next)
	}
}

// answering serves connections with the answers in turn, one each, and closes a
// connection after every second one.
func answering(t *testing.T, answers ...string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0 // one client at a time
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			br := bufio.NewReader(c)
			for range 2 {
				req, err := http.ReadRequest(br)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(c, answers[asked%len(answers)])
				asked++
			}
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return l.Addr().String()
}

func TestOnlyWhatHadNoAnswerIsSentAgain(t *testing.T) {
	const whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for _, c := range []struct {
		second string
		failed bool
		again  int64
	}{
		{whole, false, 0},
		{"", false, 1}, // as if it had been closed while it was idle
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", true, 0},
		{"HTTP/1.", true, 0},
	} {
		addr := answering(t, whole, c.second, whole)
		one := newConn(addr, 5*time.Second)
		if err := check(one.do(Request([]byte("{}")))); err != nil {
			t.Fatal(err)
		}
		err := check(one.do(Request([]byte("{}"))))
		if (err != nil) != c.failed || one.again != c.again {
			t.Errorf("second answer %q: error %v, sent again %d times, want failed %v and %d times", c.second, err, one.again, c.failed, c.again)
		}
		one.close()
	}
}

func TestSteadyTellsRefusalsFromFailures(t *testing.T) {
	asked := 0
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		switch {
		case r.Header.Get("Authorization") != "Bearer k" || asked%10 == 0:
			w.WriteHeader(http.StatusBadGateway)
		case asked%2 == 0:
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":1,"total_tokens":7}}`)
		}
	}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	a := Steady{Addrs: []string{s.Listener.Addr().String()}, Key: "k", Model: "m", Bytes: 300, Connections: 2, Timeout: 5 * time.Second}.Run(ctx)
	if a.OK == 0 || a.Refused == 0 || a.Failed == 0 || a.Tokens != 7*a.OK || a.Between(0, time.Hour) != a.OK || a.OK < a.Refused {
		t.Errorf("%d ok, %d refused, %d failed, %d tokens, %d began", a.OK, a.Refused, a.Failed, a.Tokens, len(a.Began))
	}
}
