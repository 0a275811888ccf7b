package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/proxy/tenant"
	"kvca/state/quota"
)

// purse is quotas of one tenant that are counted and never refused, but for
// concurrency where most is set.
type purse struct {
	mu     sync.Mutex
	tokens map[string]int64
	under  map[string]int
	most   map[string]int
}

func newPurse() *purse {
	return &purse{tokens: make(map[string]int64), under: make(map[string]int), most: make(map[string]int)}
}

func (p *purse) Acquire(_ context.Context, key string, _ quota.Limit, tokens int64) quota.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if most := p.most[key]; most > 0 && p.under[key] >= most {
		return quota.Verdict{Why: quota.Concurrency, RetryAfter: time.Second}
	}
	p.under[key]++
	p.tokens[key] += tokens
	return quota.Verdict{OK: true}
}

func (p *purse) Settle(key string, tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens[key] += tokens
}

func (p *purse) Release(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under[key]--
}

func (p *purse) Cancel(key string, tokens int64) {
	p.Release(key)
	p.Settle(key, -tokens)
}

// spent is what a key has used, and how many of its requests are under way.
func (p *purse) spent(key string) (tokens int64, under int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tokens[key], p.under[key]
}

func TestAStreamThatIsLeftEarlyIsPaidFor(t *testing.T) {
	p := newPurse()
	g := newRig(t, 1, with(func(c *Config) {
		c.Tenants = people{"a": {Name: "a", Limits: tenant.Limits{TokensPerSecond: 1}}}
		c.Limiter = tenant.NewLimiter(p, nil)
	}))
	const chunks = 50
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range chunks {
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	body := strings.Replace(chat("hi"), "{", `{"stream":true,`, 1)
	resp := g.post("/v1/chat/completions", body, "Authorization", "Bearer a")
	read := 0
	for buf := make([]byte, 1024); read < chunks*40; {
		n, err := resp.Body.Read(buf)
		if read += n; err != nil {
			t.Fatal(err)
		}
	}
	resp.Body.Close()
	g.await("the permit is back", func() bool { _, under := p.spent("a"); return under == 0 })
	if tokens, _ := p.spent("a"); tokens < chunks/2 {
		t.Errorf("%d tokens were paid for a stream of %d chunks", tokens, chunks)
	}
}

func TestAModelThatStandsInHasItsOwnLimits(t *testing.T) {
	p := newPurse()
	p.most["a\nspare"] = 1
	g := newRig(t, 1, with(func(c *Config) {
		c.Tenants = people{"a": {Name: "a", PerModel: map[string]tenant.Limits{"m": {Concurrent: 9}, "spare": {Concurrent: 1}}}}
		c.Limiter = tenant.NewLimiter(p, nil)
		c.Fallbacks = map[string][]string{"m": {"spare"}}
	}))
	g.addEngine("e1", "spare")
	g.waitReady()
	g.await("both models", func() bool { return len(g.pool.Models()) == 2 })
	g.engines[0].answer(status(503))
	inside, let := make(chan struct{}, 8), make(chan struct{})
	g.engines[1].answer(func(w http.ResponseWriter, r *http.Request) {
		inside <- struct{}{}
		<-let
		chatAnswer(w, r)
	})
	var one sync.WaitGroup
	one.Go(func() { g.expect(200, "/v1/chat/completions", chat("first"), "Authorization", "Bearer a") })
	<-inside
	if resp := g.post("/v1/chat/completions", chat("second"), "Authorization", "Bearer a"); resp.StatusCode == 200 {
		t.Error("a second request ran on the model that stands in")
	} else {
		read(t, resp)
	}
	close(let)
	one.Wait()
	for _, key := range []string{"a\nm", "a\nspare"} {
		g.await("permits are back", func() bool { _, under := p.spent(key); return under == 0 })
	}
}

func TestWhoWaitsForOneBackendDoesNotKeepOthersWaiting(t *testing.T) {
	queue := tenant.NewQueue(tenant.QueueConfig{MaxWait: time.Minute}, nil)
	g := newRig(t, 2, with(func(c *Config) { c.MaxActive, c.Queue = 1, queue }))
	let := make(chan struct{})
	began := make(chan string, 8)
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			switch {
			case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, responsesPrefix):
				http.NotFound(w, r)
			case strings.Contains(string(b), "slow"):
				began <- e.id
				<-let
				io.WriteString(w, `{"id":"resp_2"}`)
			default:
				io.WriteString(w, `{"id":"resp_1"}`)
			}
		})
	}
	g.expect(200, "/v1/responses", `{"model":"m","input":"first"}`)
	pinned := func(input string) string {
		return `{"model":"m","previous_response_id":"resp_1","input":"` + input + `"}`
	}
	var held sync.WaitGroup
	held.Go(func() { g.expect(200, "/v1/responses", pinned("slow")) })
	<-began
	held.Go(func() { g.expect(200, "/v1/responses", pinned("next")) })
	g.await("the second one waits", func() bool { return queue.WaitingAll() == 1 })
	g.expect(200, "/v1/chat/completions", chat("any backend will do"))
	g.expect(200, "/v1/responses/resp_1/cancel", "{}") // computes nothing
	close(let)
	held.Wait()
}

func TestRoomOfPoolsThatOthersWaitFor(t *testing.T) {
	most := 0
	g := newRig(t, 2, with(func(c *Config) { c.MaxActive = most }))
	if _, known := g.proxy.Room("m", 0); known {
		t.Error("there is room to wait for where nobody waits")
	}
	most = 3
	g = newRig(t, 2, with(func(c *Config) { c.MaxActive = most }))
	inside, let := make(chan struct{}, 8), make(chan struct{})
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			inside <- struct{}{}
			<-let
			chatAnswer(w, r)
		})
	}
	id := g.engines[0].id
	for _, c := range []struct {
		pool  string
		free  int
		known bool
	}{{"m", 6, true}, {"m" + pinned + id, 3, true}, {"m" + pinned + "nobody", 0, false}, {"unknown", 0, false}} {
		if free, known := g.proxy.Room(c.pool, 0); known != c.known || known && free != c.free {
			t.Errorf("%q: %d, %t; want %d, %t", c.pool, free, known, c.free, c.known)
		}
	}
	var one sync.WaitGroup
	one.Go(func() { g.expect(200, "/v1/chat/completions", chat("first")) })
	<-inside
	if free, known := g.proxy.Room("m", g.pool.Print("m")); free != 5 || !known {
		t.Errorf("%d are free beside one that is under way, want 5", free)
	}
	if _, known := g.proxy.Room("m", g.pool.Print("m")+1); known {
		t.Error("a pool of other backends is called for")
	}
	close(let)
	one.Wait()
}
