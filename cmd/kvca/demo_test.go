package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvca/bench/demo"
)

// smallDemo is a demo whose users hardly think, on ports of its own.
func smallDemo() *demoSettings {
	d := &demoSettings{
		listen: "127.0.0.1:0", admin: "127.0.0.1:0", nodes: 3, backends: 8, sessions: 8, profile: "8b", speed: 10,
		script: demo.DefaultScript(demoModel, 1),
	}
	d.script.ThinkMillis = demo.Span{Min: 20, Max: 60}
	return d
}

// inFleet calls play with the gateways of d running, and ends them.
func inFleet(t *testing.T, d *demoSettings, play func(context.Context, *demoFleet)) {
	t.Helper()
	f, err := openFleet(d, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context(), func(ctx context.Context) { play(ctx, f) }); err != nil {
		t.Fatal(err)
	}
	for _, n := range f.nodes() {
		if held := n.loads.Held(); held != 0 {
			t.Errorf("%s: %d reservations are left", n.settings.proxy.Node, held)
		}
	}
}

// enoughTurns is how many turns show which of the gateways does better.
const enoughTurns = 150

// routed is about how many requests the gateway's nodes have booked.
func (g *demoGateway) routed() (n uint64) {
	for _, node := range g.nodes {
		c := node.loads.Counters()
		n += c.Granted + c.Adopted
	}
	return n
}

func TestDemoShowsWhatTheCacheIsWorth(t *testing.T) {
	d := smallDemo()
	var out bytes.Buffer
	var rows []demo.Row
	inFleet(t, d, func(ctx context.Context, f *demoFleet) {
		ctx, end := context.WithTimeout(ctx, 3*patience)
		defer end()
		go func() {
			defer end()
			few := func(g demoGateway) bool { return g.routed() < enoughTurns }
			for ctx.Err() == nil && slices.ContainsFunc(f.gateways, few) {
				time.Sleep(10 * time.Millisecond)
			}
		}()
		rows = playDemo(ctx, d, f, demo.NewScreen(&out, false))
	})
	cost, robin := &rows[0].Total, &rows[1].Total
	for _, r := range rows {
		if r.Total.Errors != 0 || r.Total.FollowUps < 10 {
			t.Errorf("%s: %d errors, first %v, %d follow-ups", r.Name, r.Total.Errors, r.Err, r.Total.FollowUps)
		}
	}
	if cost.KeptShare() <= robin.KeptShare() || cost.CachedShare() <= robin.CachedShare() {
		t.Errorf("kept %.2f against %.2f, cached %.2f against %.2f",
			cost.KeptShare(), robin.KeptShare(), cost.CachedShare(), robin.CachedShare())
	}
	for _, want := range []string{"kvca (cost)", "round-robin", "sim-7", "since the start", "of 3 nodes", "degraded"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestDemoPrintsACurlLineThatWorks(t *testing.T) {
	d := smallDemo()
	inFleet(t, d, func(ctx context.Context, f *demoFleet) {
		var out bytes.Buffer
		greet(&out, d, f)
		line := regexp.MustCompile(`(?m)^  curl -si (\S+) -H 'Content-Type: (\S+)' -d '(.+)'$`).FindStringSubmatch(out.String())
		if line == nil {
			t.Fatalf("no such line in\n%s", &out)
		}
		transport := new(http.Transport)
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport}).Post(line[1], line[2], strings.NewReader(line[3]))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"assistant"`)) || answer.Header.Get("X-KVCA-Backend") == "" {
			t.Errorf("status %s, error %v, headers %v, body %s", answer.Status, err, answer.Header, text)
		}
	})
}

// interrupter ends the demo once it has said how to try it.
type interrupter struct {
	text      bytes.Buffer
	interrupt func()
}

func (w *interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("curl")) {
		w.interrupt()
	}
	return w.text.Write(p)
}

func TestDemoThatIsInterruptedEndsWithASummary(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := interrupter{interrupt: interrupt}
	var errs bytes.Buffer
	err := newApp(strings.NewReader(""), &out, &errs).RunContext(ctx, []string{"kvca", "demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--backends", "2", "--sessions", "2"})
	if err != nil || !strings.Contains(out.text.String(), "since the start") || errs.Len() > 0 {
		t.Errorf("error %v, errors %q, output\n%s", err, &errs, &out.text)
	}
}

func TestDemoTakesAnotherPortOnlyForDefaults(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	var notes bytes.Buffer
	if got := freeAddress("listen", taken, &notes); got != "127.0.0.1:0" || !strings.Contains(notes.String(), taken) || !strings.Contains(notes.String(), "--listen") {
		t.Errorf("got %s, notes %q", got, &notes)
	}
	_, errs, code := kvca(t, "", "demo", "--duration", "1ms", "--admin", "127.0.0.1:0", "--listen", taken)
	if code != 1 || !strings.Contains(errs, taken) || !strings.Contains(errs, "--listen") {
		t.Errorf("code %d, errors %q", code, errs)
	}
}

func TestDemoSaysAllThatIsWrong(t *testing.T) {
	_, errs, code := kvca(t, "", "demo", "--nodes", "17", "--backends", "0", "--sessions", "5000", "--profile", "9b", "--speed", "NaN", "--duration", "-1s")
	for _, want := range []string{"--nodes: 17", "--backends: 0", "--sessions: 5000", "--profile", "8b, 32b or 70b", "--speed: NaN", "--duration: -1s"} {
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, errs)
		}
	}
}

// closing is a terminal that is closed once the demo has said how to try it.
type closing struct{ closed bool }

func (w *closing) Write(p []byte) (int, error) {
	if w.closed {
		return 0, syscall.EIO
	}
	w.closed = bytes.Contains(p, []byte("curl"))
	return len(p), nil
}

// smallArgs run a demo of hardly anything.
var smallArgs = []string{"kvca", "demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--nodes", "1", "--backends", "1", "--sessions", "1"}

func TestDemoThatNobodySeesEnds(t *testing.T) {
	err := newApp(strings.NewReader(""), new(closing), io.Discard).RunContext(t.Context(), smallArgs)
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v, want that of the terminal", err)
	}
}

func TestDemoEndsWithItsTerminal(t *testing.T) {
	out := interrupter{interrupt: func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Error(err)
		}
	}}
	err := newApp(strings.NewReader(""), &out, io.Discard).RunContext(t.Context(), smallArgs)
	if err != nil || !strings.Contains(out.text.String(), "/\n  status    "+os.Args[0]+" status --admin http") {
		t.Errorf("error %v, output\n%s", err, &out.text)
	}
}
