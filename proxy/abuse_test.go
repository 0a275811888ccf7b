package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"kvca/proxy/backend"
	"kvca/router"
)

// Clients who announce bodies and send none must not take the budget from those
// who send theirs.
func TestAnnouncedBodiesBookNothing(t *testing.T) {
	g := newRig(t, 1, func(c *Config, _ *router.Config, _ *poolConfig) { c.MaxBodyBytes, c.BodyBudget = 1<<20, 4<<20 })
	for range 100 {
		conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n{")
	}
	g.await("all uploads begun", func() bool { return g.proxy.InFlight() == 100 })
	g.expect(200, "/v1/chat/completions", chat(long(1, 400_000)))
}

// What no HTTP status can be, and a change of protocols that nobody asked for, is
// a broken connection: the request moves on.
func TestAnswersThatAreNoneMoveOn(t *testing.T) {
	for _, line := range []string{"099 X", "000 X", "101 Switching Protocols"} {
		t.Run(line, func(t *testing.T) {
			g := newRig(t, 3)
			g.engines[1].answer(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					panic(err)
				}
				fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", line)
				conn.Close()
			})
			for i := range 40 {
				g.expect(200, "/v1/chat/completions", chat(long(i, 1000)))
			}
			if g.engines[1].served.Load() == 0 {
				t.Error("the faulty backend was never asked: the test shows nothing")
			}
		})
	}
}

// A backend that dies with more requests in flight than the budget of retries
// has room for: none of its clients notices.
func TestADyingBackendIsNoticedByNobody(t *testing.T) {
	g := newRig(t, 2)
	const requests = 300
	all := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(all) })
	defer goOn() // or a failure here would leave the engines waiting
	for i, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			<-all
			if i == 0 {
				hangUp(w, r)
				return
			}
			chatAnswer(w, r)
		})
	}
	var clients sync.WaitGroup
	for i := range requests {
		clients.Go(func() { g.expectQuietly(200, chat(long(i, 600))) })
	}
	g.await("all of them at an engine", func() bool {
		return g.engines[0].served.Load()+g.engines[1].served.Load() == requests
	})
	if n := g.engines[0].served.Load(); n <= retryFloor*retrySeconds {
		t.Errorf("only %d requests wait at the dying backend: the test shows nothing", n)
	}
	goOn()
	clients.Wait()
}

func (g *rig) expectQuietly(status int, body string) {
	resp, err := g.try("/v1/chat/completions", body)
	if err != nil {
		g.Errorf("%v", err)
		return
	}
	if text := read(g, resp); resp.StatusCode != status {
		g.Errorf("status %d: %s", resp.StatusCode, text)
	}
}

func TestAResponseIsFoundAgainAfterItsBackendWas(t *testing.T) {
	g := newRig(t, 1)
	e := g.engines[0]
	e.answer(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"id":"resp_1"}`) })
	g.expect(200, "/v1/responses", `{"model":"m","input":"hi"}`)
	if err := g.pool.Remove("e0"); err != nil {
		t.Fatal(err)
	}
	gone := mustGet(t, g.client.URL+"/v1/responses/resp_1")
	if code := codeOf(t, read(t, gone)); gone.StatusCode != 404 || code != "response_not_found" {
		t.Errorf("removed: status %d, code %s", gone.StatusCode, code)
	}
	if err := g.pool.Add(backend.Config{ID: "e0", URL: e.URL}); err != nil {
		t.Fatal(err)
	}
	g.waitReady()
	back := mustGet(t, g.client.URL+"/v1/responses/resp_1")
	if read(t, back); back.StatusCode != 200 {
		t.Errorf("added again: status %d", back.StatusCode)
	}
}

func TestNoPathReachesTheEngineThroughAResponse(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"id":"resp_1"}`) })
	g.expect(200, "/v1/responses", `{"model":"m","input":"hi"}`)
	served := g.engines[0].served.Load()
	for _, path := range []string{"/../../../admin", "/%2e%2e/%2e%2e/admin", "//admin", "/./cancel"} {
		conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/responses/resp_1%s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}", path)
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if !strings.HasPrefix(string(answer), "HTTP/1.1 404 ") {
			t.Errorf("%s: %.60s", path, answer)
		}
	}
	if now := g.engines[0].served.Load(); now != served {
		t.Errorf("%d of these paths reached the engine", now-served)
	}
	g.expect(200, "/v1/responses/resp_1/cancel", "")
}

func TestEncodedBodiesAreRefusedClearly(t *testing.T) {
	g := newRig(t, 1)
	if code := codeOf(t, g.expect(415, "/v1/chat/completions", "\x1f\x8b", "Content-Encoding", "gzip")); code != "unsupported_encoding" {
		t.Errorf("code %s", code)
	}
}

func TestAnEmptyStreamTeachesNothing(t *testing.T) {
	g := newRig(t, 1)
	g.engines[0].answer(sse(nil, nil))
	if text := g.expect(200, "/v1/chat/completions", streamed(chat(long(1, 3000)))); text != "" {
		t.Errorf("answer %q", text)
	}
	if n := g.blocks.Stats().Locations; n != 0 {
		t.Errorf("%d locations were learned", n)
	}
}
