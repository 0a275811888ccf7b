package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyWhatNobodyPromisedIsExcused(t *testing.T) {
	base := time.Unix(1000, 0)
	at := func(s float64) time.Time { return base.Add(time.Duration(s * float64(time.Second))) }
	history := []Event{
		{Fault: NodeKilled, Target: "node-1", Began: at(10), Ended: at(12)},
		{Fault: BackendKilled, Target: "fake-2", Began: at(20), Ended: at(20)},
		{Fault: BackendGarbage, Target: "fake-3", Began: at(30), Ended: at(32)},
		{Fault: "the network parts", Target: "node-0", Began: at(40), Ended: at(45)},
		{Fault: NoDescriptors, Target: "node-2", Began: at(50), Ended: at(52)},
	}
	for _, c := range []struct {
		name string
		f    Failure
		want string
	}{
		{"at the killed node", Failure{Node: "node-1", Began: at(9), Ended: at(10.1)}, NodeKilled},
		{"at another node", Failure{Node: "node-0", Began: at(9), Ended: at(10.1)}, ""},
		{"before the kill", Failure{Node: "node-1", Began: at(8), Ended: at(9)}, ""},
		{"when it was ready again", Failure{Node: "node-1", Began: at(12.1), Ended: at(13)}, ""},
		{"a stream that had begun", Failure{Backend: "fake-2", Begun: true, Began: at(19), Ended: at(20.1)}, BackendKilled},
		{"an answer that had not begun", Failure{Backend: "fake-2", Began: at(19), Ended: at(20.1)}, ""},
		{"a stream of another backend", Failure{Backend: "fake-1", Begun: true, Began: at(19), Ended: at(20.1)}, ""},
		{"a stream after the kill", Failure{Backend: "fake-2", Begun: true, Began: at(23), Ended: at(24)}, ""},
		{"garbage passed on", Failure{Backend: "fake-3", Garbage: "cut", Began: at(31), Ended: at(31.1)}, BackendGarbage},
		{"the gateway's own error", Failure{Backend: "fake-3", Began: at(31), Ended: at(31.1)}, ""},
		{"while parted", Failure{Node: "node-0", Began: at(41), Ended: at(42)}, ""},
		{"without descriptors", Failure{Node: "node-2", Began: at(51), Ended: at(60)}, NoDescriptors},
	} {
		if got := Excuse(&c.f, history); got != c.want {
			t.Errorf("%s: excused by %q, want %q", c.name, got, c.want)
		}
	}
}

func TestFailuresAreBoundedAndCounted(t *testing.T) {
	var h History
	for range maxFailures + 3 {
		h.failed(&Failure{Err: errors.New("x")})
	}
	if v := h.Judge(); len(v.Broken) != maxFailures || v.Untold != 3 {
		t.Errorf("%d kept, %d not", len(v.Broken), v.Untold)
	}
}

// quick are the kinds that no server needs seconds for.
func quick(r *rand.Rand) Kind {
	return []Kind{Chat, Stream, FollowUp, Embedding, Large, Leaver}[r.IntN(6)]
}

// clientsOf are clients of one address.
func clientsOf(addr string) *Clients {
	return &Clients{
		Model: "fake", Ready: func() []string { return []string{addr} }, Names: map[string]string{addr: "node-0"},
		Rate: 300, Workers: 16, Seed: 1, History: &History{}, draw: quick,
	}
}

func TestClientsFindNoFaultWithASoundServer(t *testing.T) {
	fleet, err := fake.Start(fake.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fleet.Close() })
	c := clientsOf(strings.TrimPrefix(fleet.URLs()[0], "http://"))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	c.Run(ctx)
	for _, f := range c.History.Judge().Broken {
		t.Errorf("%v", &f)
	}
	if n := c.Counts()["chat"]; n.Sent == 0 {
		t.Error("no chat was sent")
	}
}

func TestClientsSeeWhatIsWrong(t *testing.T) {
	for name, answer := range map[string]string{
		"an error":          "",
		"half of an object": `{"choices":[`,
		"no object":         `"data: "`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if answer == "" {
				w.WriteHeader(http.StatusBadGateway)
			}
			fmt.Fprint(w, answer)
		}))
		c := clientsOf(s.Listener.Addr().String())
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		c.Run(ctx)
		cancel()
		s.Close()
		for _, kind := range []Kind{Chat, Stream, Embedding} {
			if n := c.Counts()[kind.String()]; n.Sent == 0 || n.Failed != n.Sent {
				t.Errorf("%s: %v: %d of %d found", name, kind, n.Failed, n.Sent)
			}
		}
	}
}

func TestNoiseReachesBothTransports(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Skip("the UDP port beside it is taken:", err)
	}
	defer p.Close()
	if conns, packets := Noise(t.Context(), []string{l.Addr().String()}, 200*time.Millisecond); conns == 0 || packets == 0 {
		t.Errorf("%d connections, %d packets", conns, packets)
	}
}

func TestABlockedPipeLosesNothing(t *testing.T) {
	p, err := NewPipe(filepath.Join(t.TempDir(), "pipe"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	f, err := os.OpenFile(p.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p.Block()
	for range 3 {
		_, _ = f.WriteString("a line\n")
	}
	p.Drain()
	for p.Lines() < 3 {
		time.Sleep(time.Millisecond) // the test's own limit ends it
	}
}

func TestCrashesAreFoundInLogs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"node-0-1.log": "level=WARN msg=\"peer is gone\"\n",
		"node-1-1.log": "level=WARN msg=x\npanic: runtime error: index out of range\n\ngoroutine 1 [running]:\n",
		"engine-1.log": "panic: not ours\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Crashes(dir)
	if err != nil || len(found) != 2 || !strings.HasPrefix(found[0], "node-1-1.log: panic: ") {
		t.Errorf("found %q, %v", found, err)
	}
}

func TestTheStubReachesItsOffset(t *testing.T) {
	// mov rcx, [rip+disp] ends at 18, so disp leads to the offset behind the code.
	const end = 18
	if disp := binary.LittleEndian.Uint32(stub[end-4:]); end+int(disp) != len(stub)-8 {
		t.Errorf("it reads at %d, the offset is at %d", end+int(disp), len(stub)-8)
	}
	if to := 11 + int(stub[10]); stub[to] != 0xc3 {
		t.Errorf("it jumps to %d, where there is no return", to)
	}
}
