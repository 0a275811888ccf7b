package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait of these tests; none comes near it.
const patience = 20 * time.Second

// running is a node that runs in a test, and ends with it.
type running struct {
	*node
	stop  context.CancelFunc
	ended chan error
	http  *http.Client
}

// onItsOwn are settings of a node that has ports of its own and no peers, unless
// flags say otherwise.
func onItsOwn(t *testing.T, flags map[string][]string) *settings {
	t.Helper()
	given := map[string][]string{"listen": {"127.0.0.1:0"}, "admin": {"127.0.0.1:0"}, "gossip": {"off"}}
	for name, values := range flags {
		given[name] = values
	}
	s, err := resolve(sources{flag: flagsAre(given)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run starts a node on ports of its own.
func run(t *testing.T, flags map[string][]string) *running {
	t.Helper()
	return runWith(t, flags, &http.Client{Transport: &http.Transport{}, Timeout: patience})
}

// runWith starts a node that client can ask.
func runWith(t *testing.T, flags map[string][]string, client *http.Client) *running {
	t.Helper()
	s := onItsOwn(t, flags)
	n, err := newNode(s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return begun(t, n, client)
}

// begun runs a node until the test ends, and returns when it is ready.
func begun(t *testing.T, n *node, client *http.Client) *running {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &running{node: n, stop: stop, ended: make(chan error, 1), http: client}
	go func() { r.ended <- n.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		stop()
		<-r.ended
		r.http.CloseIdleConnections()
	})
	r.until(t, "/readyz", http.StatusOK)
	return r
}

// until waits for a status of the admin API.
func (r *running) until(t *testing.T, path string, status int) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		answer, err := r.http.Get(r.AdminURL() + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == status {
			return
		}
	}
	t.Fatalf("%s is not %d", path, status)
}

// ends waits for the node's end and returns what it ended with.
func (r *running) ends(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		t.Fatal("the node does not end")
		return nil
	}
}

func (r *running) chat(t *testing.T, body string) (*http.Response, string) {
	t.Helper()
	answer, err := r.http.Post(r.ClientURL()+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

var simulated = map[string][]string{"simulate": {"2"}, "simulate-speed": {"100"}, "debug-headers": {"true"}}

func TestFollowUpReachesTheBackendOfItsConversation(t *testing.T) {
	r := run(t, simulated)
	first, text := r.chat(t, conversation(4000, false))
	if first.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", first.Status, text)
	}
	second, _ := r.chat(t, conversation(4000, true))
	if a, b := first.Header.Get("X-KVCA-Backend"), second.Header.Get("X-KVCA-Backend"); a == "" || a != b || second.Header.Get("X-KVCA-Reason") != "hit" {
		t.Errorf("first at %q, second at %q for %q", a, b, second.Header.Get("X-KVCA-Reason"))
	}
	r.stop()
	if err := r.ends(t); err != nil {
		t.Error(err)
	}
	if held := r.loads.Held(); held != 0 {
		t.Errorf("%d reservations are left", held)
	}
}

func TestToolsReadTheNode(t *testing.T) {
	r := run(t, simulated)
	r.chat(t, conversation(4000, false))
	out, errs, code := kvca(t, conversation(4000, true), "explain", "--admin", r.AdminURL())
	for _, want := range []string{"reason   hit", "policy   cost", "CANDIDATE", "sim-0", "sim-1", "chosen"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("explain: no %q in %q, errors %q", want, out, errs)
		}
	}
	out, errs, code = kvca(t, conversation(4000, true), "explain", "--admin", r.AdminURL(), "--json")
	if code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("explain --json: %q, errors %q", out, errs)
	}
	out, errs, code = kvca(t, "", "status", "--admin", r.AdminURL())
	for _, want := range []string{"ready         yes", "MEMBER", "alive", "sim-0", "healthy"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("status: no %q in %q, errors %q", want, out, errs)
		}
	}
	_, errs, code = kvca(t, `{"model":"none"}`, "explain", "--admin", r.AdminURL())
	if code != 1 || !strings.Contains(errs, "404") || !strings.Contains(errs, "does not exist") {
		t.Errorf("explain of an unknown model: code %d, errors %q", code, errs)
	}
}

// The stream is so slow that it lasts until the drain has begun.
func TestDrainLetsAStreamEnd(t *testing.T) {
	r := run(t, map[string][]string{"simulate": {"1"}, "simulate-speed": {"2"}})
	answer, stream := openStream(t, r, 600)
	defer answer.Body.Close()
	r.stop()
	r.until(t, "/readyz", http.StatusServiceUnavailable)
	rest, err := io.ReadAll(stream)
	if err != nil || !bytes.Contains(rest, []byte("[DONE]")) {
		t.Errorf("the stream ended with %v and %q", err, rest)
	}
	if err := r.ends(t); err != nil {
		t.Error(err)
	}
}

func TestDrainTimeoutCutsAStream(t *testing.T) {
	r := run(t, map[string][]string{"simulate": {"1"}, "drain-timeout": {"50ms"}})
	answer, stream := openStream(t, r, 100_000)
	defer answer.Body.Close()
	r.stop()
	if err := r.ends(t); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(stream); err == nil && bytes.Contains(rest, []byte("[DONE]")) {
		t.Error("the stream ended as if it were whole")
	}
	if held := r.loads.Held(); held != 0 {
		t.Errorf("%d reservations are left", held)
	}
}

// openStream begins a stream of that many tokens and reads its first bytes.
func openStream(t *testing.T, r *running, tokens int) (*http.Response, io.Reader) {
	t.Helper()
	body, _ := json.Marshal(map[string]any{
		"model": "sim", "stream": true, "max_tokens": tokens, "ignore_eos": true,
		"messages": []any{map[string]string{"role": "user", "content": "count"}},
	})
	answer, err := r.http.Post(r.ClientURL()+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 16)
	if _, err := io.ReadFull(answer.Body, first); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("status %s, error %v", answer.Status, err)
	}
	return answer, answer.Body
}

func TestDrainDelayKeepsServing(t *testing.T) {
	r := run(t, map[string][]string{"simulate": {"1"}, "simulate-speed": {"100"}, "drain-delay": {"1s"}})
	r.stop()
	r.until(t, "/readyz", http.StatusServiceUnavailable)
	if answer, text := r.chat(t, conversation(10, false)); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
	if err := r.ends(t); err != nil {
		t.Error(err)
	}
}

func TestNodeWithoutBackendsTakesThemAtRunTime(t *testing.T) {
	other := run(t, simulated)
	r := run(t, nil)
	if answer, _ := r.chat(t, conversation(10, false)); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without backends: %s", answer.Status)
	}
	body := `{"id":"next","url":"` + other.ClientURL() + `"}`
	answer, err := r.http.Post(r.AdminURL()+"/backends", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	r.until(t, "/readyz", http.StatusOK)
	if answer, text := r.chat(t, conversation(10, false)); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
}

func TestTakenAddressIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, flag := range []string{"listen", "admin", "link", "gossip"} {
		flags := map[string][]string{"gossip": {"127.0.0.1:0"}, "link": {"127.0.0.1:0"}}
		flags[flag] = []string{l.Addr().String()}
		if n, err := newNode(onItsOwn(t, flags), slog.New(slog.DiscardHandler)); err == nil {
			n.Close()
			t.Errorf("--%s: no error", flag)
		} else if !strings.Contains(err.Error(), "--"+flag) || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("--%s: error is %v", flag, err)
		}
	}
}

func TestNodeThatWasNotRunLeavesNothing(t *testing.T) {
	for _, gossip := range []string{"off", "127.0.0.1:0"} {
		s := onItsOwn(t, map[string][]string{"gossip": {gossip}, "link": {"127.0.0.1:0"}, "simulate": {"1"}})
		n, err := newNode(s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		n.Close()
		n.Close()
	}
}

func TestVisitorsAreWaitedFor(t *testing.T) {
	var v visitors
	inside, leave := make(chan struct{}), make(chan struct{})
	h := v.count(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(inside); <-leave }))
	var work sync.WaitGroup
	work.Go(func() { h.ServeHTTP(nil, nil) })
	<-inside
	began := time.Now()
	v.wait(time.Millisecond)
	if time.Since(began) < time.Millisecond {
		t.Error("nobody was waited for")
	}
	close(leave)
	v.wait(patience)
	work.Wait()
	if v.inside != 0 {
		t.Errorf("%d inside", v.inside)
	}
}
