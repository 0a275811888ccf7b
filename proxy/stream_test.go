package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/router"
)

// sse answers a stream of events, each flushed; afterwards then is called.
func sse(events []string, then func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			io.WriteString(w, e)
			http.NewResponseController(w).Flush()
		}
		if then != nil {
			then(w, r)
		}
	}
}

const (
	chunk    = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"
	lastOnes = `data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":700,"total_tokens":702,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":512}}}` + "\n\ndata: [DONE]\n\n"
)

func streamed(body string) string { return strings.Replace(body, `{`, `{"stream":true,`, 1) }

func TestEachChunkIsFlushedAtOnce(t *testing.T) {
	g := newRig(t, 1)
	step := make(chan struct{})
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5 {
			io.WriteString(w, chunk)
			http.NewResponseController(w).Flush()
			<-step // goes on only when the client has it
		}
		io.WriteString(w, lastOnes)
	})
	resp := g.post("/v1/chat/completions", streamed(chat(long(1, 1500))))
	lines := bufio.NewReader(resp.Body)
	for range 5 {
		if line, err := lines.ReadString('\n'); err != nil || line+"\n" != chunk {
			t.Fatalf("%q, %v", line, err)
		}
		lines.ReadString('\n')
		step <- struct{}{}
	}
	rest, err := io.ReadAll(lines)
	if err != nil || string(rest) != lastOnes {
		t.Errorf("ended with %q, %v", rest, err)
	}
	resp.Body.Close()
	metrics := g.metrics()
	for _, want := range []string{`kvca_usage_cached_tokens_total{model="m"} 512`, "kvca_reported_cached_tokens_total 512", `kvca_usage_prompt_tokens_total{model="m"} 700`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
}

func (g *rig) metrics() string {
	g.Helper()
	return read(g, mustGet(g, g.admin.URL+"/metrics"))
}

// A stream's headers come before anything is computed: load and locations must
// wait for its first byte.
func TestAStreamBeginsWithItsFirstByte(t *testing.T) {
	g := newRig(t, 1)
	headersOut, goOn := make(chan struct{}), make(chan struct{})
	g.engines[0].answer(sse(nil, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		close(headersOut)
		<-goOn
		io.WriteString(w, chunk+lastOnes)
	}))
	done := make(chan string)
	go func() { done <- read(t, g.post("/v1/chat/completions", streamed(chat(long(1, 1500))))) }()
	<-headersOut
	slot := g.facts("e0").Slot
	if load, n := g.ledger.Load(slot), g.blocks.Stats().Locations; load.Novel == 0 || n != 0 {
		t.Errorf("after the headers: load %+v, %d locations; neither given back nor learned was right", load, n)
	}
	close(goOn)
	<-done
	if n := g.blocks.Stats().Locations; n == 0 {
		t.Error("nothing was learned from the stream")
	}
}

// A stream that breaks ends in its API's own way, without a clean end.
func TestABrokenStreamEndsInItsAPIsWay(t *testing.T) {
	for _, c := range []struct{ path, body, first, want, never string }{
		{"/v1/chat/completions", streamed(chat("hi")), chunk, `data: {"error":{`, "[DONE]"},
		{"/v1/completions", `{"model":"m","prompt":"hi","stream":true}`, chunk, `data: {"error":{`, "[DONE]"},
		{"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n", "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\"", "message_stop"},
		{"/v1/responses", `{"model":"m","input":"hi","stream":true}`, "event: response.created\ndata: {\"type\":\"response.created\"}\n\n", "event: response.failed\ndata: {", "response.completed"},
	} {
		t.Run(c.path, func(t *testing.T) {
			g := newRig(t, 1)
			g.engines[0].answer(sse([]string{c.first}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
			resp := g.post(c.path, c.body)
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil {
				t.Error("the connection was ended cleanly")
			}
			rest, ok := strings.CutPrefix(string(text), c.first)
			if !ok || !strings.HasPrefix(rest, c.want) || strings.Contains(rest, c.never) || !strings.Contains(rest, "stream_broken") {
				t.Errorf("the stream ended with %q", rest)
			}
		})
	}
}

func TestAnUnstreamedAnswerThatBreaksIsCut(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"id":`)
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	resp := g.post("/v1/chat/completions", chat("hi"))
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err == nil || string(text) != `{"id":` {
		t.Errorf("%q, %v", text, err)
	}
}

func TestAnEnginesOwnErrorEventPassesAndTeachesNothing(t *testing.T) {
	g := newRig(t, 1)
	stream := `data: {"error": {"message": "out of memory", "code": 500}}` + "\n\ndata: [DONE]\n\n"
	g.engines[0].answer(sse([]string{stream}, nil))
	if got := g.expect(200, "/v1/chat/completions", streamed(chat(long(1, 2000)))); got != stream {
		t.Errorf("the stream changed to %q", got)
	}
	if n := g.blocks.Stats().Locations; n != 0 {
		t.Errorf("%d locations were learned", n)
	}
	if !strings.Contains(g.metrics(), "kvca_engine_error_events_total 1") {
		t.Error("the error event was not counted")
	}
}

// When the client leaves, in prefill or mid-stream, the engine is told.
func TestAClientThatLeavesCancelsTheBackend(t *testing.T) {
	for _, phase := range []string{"prefill", "prefill after headers", "stream"} {
		t.Run(phase, func(t *testing.T) {
			g := newRig(t, 1)
			reached, cancelled := make(chan struct{}), make(chan struct{})
			g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "text/event-stream")
				if phase == "stream" {
					io.WriteString(w, chunk)
				}
				if phase != "prefill" {
					http.NewResponseController(w).Flush()
				}
				close(reached)
				<-r.Context().Done()
				close(cancelled)
			})
			ctx, leave := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.client.URL+"/v1/chat/completions", strings.NewReader(streamed(chat(long(1, 2000)))))
			left := make(chan error)
			go func() {
				resp, err := g.client.Client().Do(req)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				left <- err
			}()
			<-reached
			if phase == "stream" {
				g.await("the stream has begun", func() bool { return g.blocks.Stats().Locations > 0 })
			}
			leave()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("the client saw %v", err)
			}
			select {
			case <-cancelled:
			case <-time.After(10 * time.Second):
				t.Fatal("the engine was never told")
			}
			g.await("request over", func() bool { return g.proxy.InFlight() == 0 })
			if n := g.blocks.Stats().Locations; (n != 0) != (phase == "stream") {
				t.Errorf("%d locations", n)
			}
			if s := g.facts("e0").Standing(); s != router.Available {
				t.Errorf("the backend is %v because a client left", s)
			}
		})
	}
}

func TestManyClientsThatLeaveLeakNothing(t *testing.T) {
	g := newRig(t, 4)
	for _, e := range g.engines {
		e.answer(sse(nil, func(w http.ResponseWriter, r *http.Request) {
			for range 20 {
				select {
				case <-r.Context().Done():
					return
				case <-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond):
				}
				io.WriteString(w, chunk)
				http.NewResponseController(w).Flush()
			}
			io.WriteString(w, lastOnes)
		}))
	}
	var clients sync.WaitGroup
	limit := make(chan struct{}, 64)
	for i := range 500 {
		limit <- struct{}{}
		clients.Go(func() {
			defer func() { <-limit }()
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(40_000))*time.Microsecond)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.client.URL+"/v1/chat/completions", strings.NewReader(streamed(chat(long(i, 3000)))))
			if resp, err := g.client.Client().Do(req); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	clients.Wait() // the rig checks that all is at rest
}

func TestAClientThatLeavesDuringItsUpload(t *testing.T) {
	g := newRig(t, 1)
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{\"model\":")
	g.await("request begun", func() bool { return g.proxy.InFlight() == 1 })
	conn.Close()
	g.await("request over", func() bool { return g.proxy.InFlight() == 0 })
	if n := g.engines[0].served.Load(); n != 0 {
		t.Errorf("the engine got %d requests", n)
	}
}

func TestASlowUploadIsRefused(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.UploadIdle = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{\"model\":")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if code := codeOf(t, read(t, resp)); resp.StatusCode != http.StatusRequestTimeout || code != "upload_timeout" {
		t.Errorf("status %d, code %s", resp.StatusCode, code)
	}
}

func TestAClientThatTakesNothingIsCut(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.WriteIdle = 100 * time.Millisecond })
	stopped := make(chan struct{})
	g.engines[0].answer(sse(nil, func(w http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		big := strings.Repeat(chunk, 1000)
		for range 1000 { // 100 MB: more than the sockets' buffers take
			if _, err := io.WriteString(w, big); err != nil {
				return
			}
		}
	}))
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := streamed(chat("hi"))
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("the engine still writes to a client that takes nothing")
	}
}

func TestHTTP2WithoutTLS(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(sse([]string{chunk, lastOnes}, nil))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Post(g.client.URL+"/v1/chat/completions", "application/json", strings.NewReader(streamed(chat("hi"))))
	if err != nil {
		t.Fatal(err)
	}
	if text := read(t, resp); resp.ProtoMajor != 2 || text != chunk+lastOnes {
		t.Errorf("HTTP/%d: %q", resp.ProtoMajor, text)
	}
}
