package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kvca/proxy/engine/kvevent"
	"kvca/proxy/engine/zmtp"
)

// letter is one batch as it came over the wire.
type letter struct {
	topic   string
	seq     uint64
	payload string
}

// listener is a subscriber that keeps everything, in channels big enough for these tests.
type listener struct {
	connected chan struct{}
	messages  chan letter
}

func (l *listener) Connected(*zmtp.Conn)           { l.connected <- struct{}{} }
func (l *listener) Disconnected(*zmtp.Conn, error) {}
func (l *listener) Message(_ *zmtp.Conn, frames [][]byte) {
	m := letter{}
	if len(frames) == 3 && len(frames[1]) == 8 {
		m = letter{string(frames[0]), binary.BigEndian.Uint64(frames[1]), string(frames[2])}
	}
	l.messages <- m
}

func listening(t *testing.T, c zmtp.Config) *listener {
	t.Helper()
	l := &listener{make(chan struct{}, 100), make(chan letter, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- zmtp.Subscribe(ctx, c, l) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return l
}

func (l *listener) next(t *testing.T) letter {
	t.Helper()
	select {
	case m := <-l.messages:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("no message within 10 s")
	}
	return letter{}
}

// subscription waits until the server knows of a subscriber, since what it publishes before is lost.
func subscription(t *testing.T, s *Server) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.state().Subscribers == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no subscription within 10 s")
		}
	}
}

var onLoopback = Events{Endpoint: "tcp://127.0.0.1:0", Bind: true, Replay: "tcp://127.0.0.1:0", Topic: "kv"}

// announced runs a server with events and a subscriber to it.
func announced(t *testing.T, cfg ServerConfig) (*Server, *listener, func(tokens int, seed uint64)) {
	t.Helper()
	s, base, client := served(t, cfg)
	// The server opens its sockets before it answers.
	ask := func(tokens int, seed uint64) {
		t.Helper()
		body, _ := json.Marshal(m{"prompt": words(tokens, seed), "max_tokens": 1})
		resp, err := post(t, client, base+"/v1/completions", string(body))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		_ = resp.Body.Close()
	}
	resp, err := post(t, client, base+"/tokenize", `{"prompt":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	endpoint, _ := s.EventSockets()
	l := listening(t, zmtp.Config{Endpoint: endpoint})
	subscription(t, s)
	return s, l, ask
}

func decoded(t *testing.T, payload string) *kvevent.Batch {
	t.Helper()
	var d kvevent.Decoder
	b, err := d.Decode([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASubscriberHearsWhatTheServerCaches(t *testing.T) {
	small := Profile8B
	small.KVTokens = 20 * small.BlockTokens
	s, l, ask := announced(t, ServerConfig{Speedup: 100, Profile: small, Events: onLoopback})
	for i := range uint64(12) {
		ask(40+int(i)*8, i%5)
	}
	known, batches := holding{}, s.state().Batches
	var payloads []string
	for i := range batches {
		m := l.next(t)
		if m.topic != "kv" || m.seq != i {
			t.Errorf("batch %d has number %d and topic %q", i, m.seq, m.topic)
		}
		known.hear(t, decoded(t, m.payload))
		payloads = append(payloads, m.payload)
	}
	s.Inspect(func(e *Engine) {
		if want := contents(e.pool); !maps.Equal(known, want) || len(want) == 0 {
			t.Errorf("heard of %v, cached is %v", known, want)
		}
	})
	if got := replayed(t, s, 2); len(got) != len(payloads)-2 || got[0] != payloads[2] {
		t.Errorf("%d batches of %d are replayed from the third on", len(got), len(payloads))
	}
}

// replayed asks for batches again.
func replayed(t *testing.T, s *Server, from uint64) (payloads []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, endpoint := s.EventSockets()
	conn, err := zmtp.Dial(ctx, zmtp.Config{Endpoint: endpoint}, "DEALER")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Send(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		t.Fatal(err)
	}
	for {
		frames, err := conn.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if last := frames[len(frames)-1]; len(last) > 0 {
			payloads = append(payloads, string(last))
			continue
		}
		return payloads
	}
}

func TestAnEndpointWithAHostIsConnectedTo(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "tcp://" + free.Addr().String()
	_ = free.Close()
	l := listening(t, zmtp.Config{Endpoint: endpoint, Bind: true})
	s, base, client := served(t, ServerConfig{Speedup: 100, Events: Events{Endpoint: endpoint}})
	subscription(t, s)
	resp, err := post(t, client, base+"/v1/completions", `{"prompt":"`+words(20, 1)+`"}`)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if m := l.next(t); m.seq != 0 || m.topic != "" {
		t.Errorf("batch %d with topic %q", m.seq, m.topic)
	}
	if got := s.eventSources()["0"]; got.Endpoint != endpoint || got.Replay != nil {
		t.Errorf("listed as %+v", got)
	}
}

// The list has the members of a recorded one, and says of a bound socket that it is bound.
func TestEventSourcesAreListedAsRecorded(t *testing.T) {
	raw, err := os.ReadFile("testdata/07_get_kv_event_sources.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Response struct {
			JSON map[string]map[string]any
		}
	}
	if err := json.Unmarshal(raw, &recorded); err != nil {
		t.Fatal(err)
	}
	cfg := onLoopback
	cfg.Topic, cfg.Rank = "kv-events", 2
	s := NewServer(ServerConfig{Events: cfg})
	defer s.Close()
	if err := s.OpenEvents(); err != nil {
		t.Fatal(err)
	}
	got := parse(t, get(s, "/kv_event_sources").Body.Bytes())["2"].(map[string]any)
	want := recorded.Response.JSON["0"]
	endpoint, replay := s.EventSockets()
	want["endpoint"], want["replay_endpoint"] = "tcp://*"+endpoint[strings.LastIndexByte(endpoint, ':'):], replay
	if !maps.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	if w := get(NewServer(ServerConfig{}), "/kv_event_sources"); w.Body.String() != "{}" {
		t.Errorf("a server without events lists %s", w.Body)
	}
	cfg.Form = "sglang"
	s = NewServer(ServerConfig{Events: cfg})
	defer s.Close()
	if err := s.OpenEvents(); err != nil {
		t.Fatal(err)
	}
	endpoint, _ = s.EventSockets()
	info := dig(t, parse(t, get(s, "/server_info").Body.Bytes()), "kv_events").(map[string]any)
	if address := fmt.Sprintf("tcp://127.0.0.1:%v", info["endpoint_port_base"]); address != endpoint || info["endpoint_host"] != "*" {
		t.Errorf("SGLang's page has %v, the socket is %s", info, endpoint)
	}
	if w := get(s, "/kv_event_sources"); w.Code != http.StatusNotFound {
		t.Errorf("an SGLang has vLLM's page: status %d", w.Code)
	}
	if w := get(NewServer(ServerConfig{Lacks: Lacks{EventSources: true}}), "/kv_event_sources"); w.Code != http.StatusNotFound {
		t.Errorf("a server without the list has status %d", w.Code)
	}
}

func TestAServerWithoutItsEventSocketsDoesNotServe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, events := range []Events{
		{Endpoint: "tcp://" + taken.Addr().String(), Bind: true}, {Endpoint: "tcp://*:0", Form: "other"}, {Endpoint: "nowhere"},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(ServerConfig{Events: events})
		if err := Serve(t.Context(), ln, s); err == nil {
			t.Errorf("%+v: it serves", events)
		}
		if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			_ = c.Close()
			t.Errorf("%+v: its listener is left open", events)
		}
		s.Close()
	}
}
