package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvca/router"
)

func TestBodyAndHeadersPassByteForByte(t *testing.T) {
	g := newRig(t, 1)
	body := "{ \"model\":\t\"m\", \"n\":null,\"seed\":9007199254740993 ,\"x\":1.0e0,\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e4\\/\",\"foo\":{\"b\":1,\"a\":[ ]}}],\"user\":\"u\",\"vllm_xargs\":{\"k\":\"v\"}}\n"
	var got string
	var header http.Header
	var target string
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, header, target = string(b), r.Header.Clone(), r.RequestURI
		w.Header().Set("X-Engine", "yes")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "secret")
		io.WriteString(w, "answer")
	})
	resp := g.post("/v1/chat/completions?a=%2F&b=c", body, "X-Custom", "kept", "Traceparent", "00-1-2-01",
		"Connection", "X-Drop", "X-Drop", "1", "X-Gateway-Priority", "0", "X-Forwarded-For", "6.6.6.6", "Authorization", "Bearer k", "X-Request-Id", "mine-1")
	if answer := read(t, resp); answer != "answer" {
		t.Errorf("answer %q", answer)
	}
	if got != body {
		t.Errorf("the body changed:\n got %q\nwant %q", got, body)
	}
	if target != "/v1/chat/completions?a=%2F&b=c" {
		t.Errorf("target %q", target)
	}
	for name, want := range map[string]string{
		"X-Custom": "kept", "Traceparent": "00-1-2-01", "Authorization": "Bearer k", "X-Request-Id": "mine-1",
		"X-Drop": "", "Connection": "", "X-Gateway-Priority": "", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http",
	} {
		if header.Get(name) != want {
			t.Errorf("header %s reached the engine as %q, want %q", name, header.Get(name), want)
		}
	}
	if resp.Header.Get("X-Engine") != "yes" || resp.Header.Get("X-Hop") != "" || resp.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("the answer's headers are %v", resp.Header)
	}
}

func TestTrustedProxyTellsTheClient(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.TrustedProxies = prefixes("127.0.0.0/8") })
	var header http.Header
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) { header = r.Header.Clone(); chatAnswer(w, r) })
	g.expect(200, "/v1/chat/completions", chat("hi"), "X-Forwarded-For", "6.6.6.6", "X-Forwarded-Proto", "https")
	if got := header.Get("X-Forwarded-For") + " " + header.Get("X-Forwarded-Proto"); got != "6.6.6.6, 127.0.0.1 https" {
		t.Errorf("forwarded as %q", got)
	}
}

// The affinity table of other routers: each follow-up on the backend that served
// the turn before, and no backend with much more than its share, with and
// without a system prompt that all conversations begin with.
func TestFollowUpsStayAndLoadSpreads(t *testing.T) {
	for _, c := range []struct {
		name   string
		shared string
		turn   int // bytes
		most   float64
	}{{"nothing shared", "", 800, 1.1}, {"4 kB shared, short turns", long(0, 4096), 300, 1.25}} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, 4)
			for _, e := range g.engines {
				e.answer(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(30 * time.Millisecond) // the engine's work
					chatAnswer(w, r)
				})
			}
			const conversations, turns = 200, 5
			var kept atomic.Int64
			var workers sync.WaitGroup
			queue := make(chan int)
			for range 32 {
				workers.Go(func() {
					for i := range queue {
						kept.Add(int64(g.converse(i, turns, c.shared, c.turn)))
					}
				})
			}
			for i := range conversations {
				queue <- i
			}
			close(queue)
			workers.Wait()
			if share := float64(kept.Load()) / (conversations * (turns - 1)); share < 0.98 {
				t.Errorf("%.3f of the follow-ups stayed, want 0.98 or more", share)
			}
			counts := []int64{}
			for _, e := range g.engines {
				counts = append(counts, e.served.Load())
			}
			if most := float64(slices.Max(counts)) / (conversations * turns / 4); most > c.most {
				t.Errorf("max/mean %.2f, want at most %.2f: %v", most, c.most, counts)
			}
		})
	}
}

// converse holds one conversation and counts the turns that stayed.
func (g *rig) converse(seed, turns int, shared string, turnBytes int) (kept int) {
	var history []string
	last := ""
	for turn := range turns {
		history = append(history, shared+long(seed*100+turn, turnBytes))
		shared = ""
		resp, err := g.try("/v1/chat/completions", chat(history...))
		if err != nil {
			g.Errorf("turn %d: %v", turn, err)
			return kept
		}
		read(g, resp)
		at := resp.Header.Get("X-KVCA-Backend")
		if at == last {
			kept++
		}
		last = at
		history = append(history, "fine")
	}
	return kept
}

func TestLightLoadSpreadsEvenly(t *testing.T) {
	for name, text := range map[string]func(int) string{
		"different":          func(i int) string { return long(i, 2000) },
		"one short question": func(int) string { return "hi" },
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, 4)
			for i := range 200 {
				g.expect(200, "/v1/chat/completions", chat(text(i)))
			}
			for _, e := range g.engines {
				if n := e.served.Load(); n < 25 || n > 80 {
					t.Errorf("%s served %d of 200 requests that came one at a time", e.id, n)
				}
			}
		})
	}
}

func TestA500IsPassedOnAtOnce(t *testing.T) {
	g := newRig(t, 4)
	total := 0
	for _, e := range g.engines {
		e.answer(status(500))
	}
	text := g.expect(500, "/v1/chat/completions", chat(long(1, 2000)))
	for _, e := range g.engines {
		total += int(e.served.Load())
	}
	if total != 1 || !strings.Contains(text, "engine says 500") {
		t.Errorf("a 500 took %d attempts; answer %s", total, text)
	}
	if n := g.blocks.Stats().Locations; n != 0 {
		t.Errorf("%d locations were learned from an error", n)
	}
}

func TestRefusalsMoveOnUnseen(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"closed before headers": hangUp,
		"502":                   status(502), "503": status(503), "504": status(504), "429": status(429),
		"headers, then nothing": func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, 4)
			g.engines[2].answer(fault)
			for i := range 40 {
				g.expect(200, "/v1/chat/completions", chat(long(i, 1000)))
			}
			if g.engines[2].served.Load() == 0 {
				t.Error("the faulty backend was never asked: the test shows nothing")
			}
		})
	}
}

func TestABackendThatRefusesConnectionsIsNotAskedAgain(t *testing.T) {
	g := newRig(t, 3)
	g.engines[1].Close()
	for i := range 40 {
		g.expect(200, "/v1/chat/completions", chat(long(i, 1000)))
	}
	if s := g.facts("e1").Standing(); s == router.Available {
		t.Error("a backend that refuses connections is still available")
	}
}

func TestTheLastRefusalIsPassedOn(t *testing.T) {
	g := newRig(t, 2)
	for _, e := range g.engines {
		e.answer(status(429))
	}
	text := g.expect(429, "/v1/chat/completions", chat("hi"))
	if !strings.Contains(text, "engine says 429") {
		t.Errorf("answer %s", text)
	}
	if g.engines[0].served.Load() != 1 || g.engines[1].served.Load() != 1 {
		t.Errorf("asked %d and %d times", g.engines[0].served.Load(), g.engines[1].served.Load())
	}
}

func TestClientErrorsEjectNobody(t *testing.T) {
	g := newRig(t, 2)
	for _, e := range g.engines {
		e.answer(status(400))
	}
	for range 100 {
		g.expect(400, "/v1/chat/completions", chat("hi"))
	}
	for _, e := range g.engines {
		e.answer(chatAnswer)
		if s := g.facts(e.id).Standing(); s != router.Available {
			t.Errorf("%s is %v after client errors", e.id, s)
		}
	}
	g.expect(200, "/v1/chat/completions", chat("hi"))
}

func TestTheFirstRequestAfterAnOutageIsServed(t *testing.T) {
	g := newRig(t, 2)
	for _, e := range g.engines {
		e.answer(status(503))
	}
	for i := range 20 {
		g.expect(503, "/v1/chat/completions", chat(long(i, 600)))
	}
	for _, e := range g.engines {
		e.answer(chatAnswer)
	}
	for i := range 40 {
		g.expect(200, "/v1/chat/completions", chat(long(100+i, 600)))
	}
}

func TestRetriesStayInTheirBudget(t *testing.T) {
	g := newRig(t, 2)
	for _, e := range g.engines {
		e.answer(status(429)) // opens no breaker
	}
	const requests = 400
	for range requests {
		g.expect(429, "/v1/chat/completions", chat("hi"))
	}
	retried := g.engines[0].served.Load() + g.engines[1].served.Load() - requests
	if limit := int64(retryFloor*retrySeconds + 20); retried > limit {
		t.Errorf("%d of %d requests were retried, want at most %d", retried, requests, limit)
	}
}

func TestNoBackendLeft(t *testing.T) {
	g := newRig(t, 1)
	if err := g.pool.Drain("e0"); err != nil {
		t.Fatal(err)
	}
	if code := codeOf(t, g.expect(503, "/v1/chat/completions", chat("hi"))); code != "no_backend" {
		t.Errorf("code %s", code)
	}
	if err := g.pool.Undrain("e0"); err != nil {
		t.Fatal(err)
	}
	g.await("available again", func() bool { return g.facts("e0").Standing() == router.Available })
	g.engines[0].Close()
	if code := codeOf(t, g.expect(502, "/v1/chat/completions", chat("hi"))); code != "backend_unreachable" {
		t.Errorf("code %s", code)
	}
}

func TestAnAliasIsSplicedAndSharesThePrefix(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.Aliases = map[string]string{"gpt-x": "m"} })
	var got string
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
		chatAnswer(w, r)
	})
	g.expect(200, "/v1/chat/completions", `{"messages" : [{"role":"user","content":"`+long(1, 2000)+`"}], "model" :  "gpt-x" }`)
	if !strings.HasSuffix(got, `"model" :  "m" }`) || !strings.HasPrefix(got, `{"messages" : [`) {
		t.Errorf("the engine got ...%s", got[len(got)-40:])
	}
	resp := g.post("/v1/chat/completions", chat(long(1, 2000)))
	read(t, resp)
	if resp.Header.Get("X-KVCA-Matched-Blocks") != "3" && resp.Header.Get("X-KVCA-Matched-Blocks") != "4" {
		t.Errorf("the model under its own name matched %s blocks", resp.Header.Get("X-KVCA-Matched-Blocks"))
	}
	list := read(t, mustGet(t, g.client.URL+"/v1/models"))
	for _, want := range []string{`"gpt-x"`, `"m"`} {
		if !strings.Contains(list, want) {
			t.Errorf("/v1/models lacks %s: %s", want, list)
		}
	}
}

func TestAResponseIsContinuedWhereItIsKept(t *testing.T) {
	g := newRig(t, 4)
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"resp_%s","object":"response","usage":{"input_tokens":5,"output_tokens":1}}`, e.id)
		})
	}
	for range 20 {
		first := g.post("/v1/responses", `{"model":"m","input":"hi"}`)
		read(t, first)
		at := first.Header.Get("X-KVCA-Backend")
		next := g.post("/v1/responses", `{"model":"m","input":"more","previous_response_id":"resp_`+at+`"}`)
		read(t, next)
		if next.Header.Get("X-KVCA-Backend") != at || next.Header.Get("X-KVCA-Reason") != "pinned" {
			t.Fatalf("made at %s, continued at %s for %s", at, next.Header.Get("X-KVCA-Backend"), next.Header.Get("X-KVCA-Reason"))
		}
		stored := mustGet(t, g.client.URL+"/v1/responses/resp_"+at)
		read(t, stored)
		if stored.StatusCode != 200 || stored.Header.Get("X-KVCA-Backend") != at {
			t.Fatalf("retrieved with %d from %s", stored.StatusCode, stored.Header.Get("X-KVCA-Backend"))
		}
	}
	lost := mustGet(t, g.client.URL+"/v1/responses/resp_nowhere")
	if code := codeOf(t, read(t, lost)); lost.StatusCode != 404 || code != "response_not_found" {
		t.Errorf("status %d, code %s", lost.StatusCode, code)
	}
}

func TestOtherEndpointsAreRoutedAndCounted(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.Paths = []string{"/v1/audio/transcriptions"} })
	var active int64
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		active = g.ledger.Load(g.facts("e0").Slot).Active
		io.WriteString(w, r.URL.Path)
	})
	for path, body := range map[string]string{
		"/v1/embeddings": `{"model":"m","input":"x"}`, "/tokenize": `{"prompt":"x"}`, "/detokenize": `{"tokens":[1]}`,
		"/v1/rerank": `{"model":"m"}`, "/v1/score": `{"model":"m"}`, "/v1/messages/count_tokens": `{"model":"m"}`,
	} {
		if got := g.expect(200, path, body); got != path || active != 1 {
			t.Errorf("%s: answered by %q with %d active", path, got, active)
		}
	}
	if got := g.expect(200, "/v1/audio/transcriptions", "--x\r\n", "Content-Type", "multipart/form-data; boundary=x"); got != "/v1/audio/transcriptions" {
		t.Errorf("pass-through answered %q", got)
	}
	if n := g.blocks.Stats().Locations; n != 0 {
		t.Errorf("%d locations were learned from requests without a chain", n)
	}
}

func TestAPanicIsAnsweredAndLeaksNothing(t *testing.T) {
	g := newRig(t, 1)
	namers := g.proxy.namers.New
	g.proxy.namers.New = func() any { panic("boom") }
	code := codeOf(t, g.expect(500, "/v1/chat/completions", chat("hi")))
	g.proxy.namers.New = namers
	if code != "internal_error" || !strings.Contains(g.log.String(), "boom") {
		t.Errorf("code %s; log %s", code, g.log)
	}
	g.log.b.Reset() // the one error that was meant
	g.expect(200, "/v1/chat/completions", chat("hi"))
}

func mustGet(t testing.TB, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// At debug level a request's line has the whole decision, as /explain gives it.
func TestDecisionsAreLoggedWhole(t *testing.T) {
	g := newRig(t, 2)
	g.expect(200, "/v1/chat/completions", chat("hi"))
	g.await("the line", func() bool { return strings.Contains(g.log.String(), "msg=request") })
	for _, want := range []string{`\"reason\":\"miss\"`, `\"candidates\":[{\"backend\":\"e0\"`, `\"block_unit\":\"cbr\"`} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}
