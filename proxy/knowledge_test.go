package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"kvca/proxy/backend"
	"kvca/proxy/engine/prompt"
	"kvca/router"
	"kvca/state/chain"
	"kvca/state/kvindex"
)

// informed is a rig whose engines tell what they hold, through the test's hands.
type informed struct {
	*rig
	index   *kvindex.Index
	sources map[string]*kvindex.Source
}

func newInformed(t *testing.T, engines int, edit func(*KnowledgeConfig)) *informed {
	x, err := kvindex.New(kvindex.Config{Key: chain.DeriveKey("test"), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := prompt.New(prompt.Config{Budget: 250 * time.Millisecond}) // a test's machine may be slow
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(prompts.Close)
	g := &informed{index: x, sources: make(map[string]*kvindex.Source)}
	g.rig = newRig(t, engines, func(c *Config, _ *router.Config, _ *backend.PoolConfig) {
		k := KnowledgeConfig{Index: x, Prompts: prompts, Logger: c.Logger, Registerer: c.Registerer}
		if edit != nil {
			edit(&k)
		}
		if c.Knowledge, err = NewKnowledge(k); err != nil {
			t.Fatal(err)
		}
	})
	for _, b := range g.pool.All() {
		b.SetPrecise(true)
		s, err := x.Open(kvindex.Origin{Slot: b.Slot, Model: "m"})
		if err != nil {
			t.Fatal(err)
		}
		s.SetLive(true)
		g.sources[b.ID] = s
	}
	for _, e := range g.engines {
		e.answer(g.renders(t, 100, 60))
	}
	return g
}

// renders is an engine whose prompts all have the tokens 0, 1, 2 and so on, as many
// as length says, and that reports so many of them as cached.
func (g *informed) renders(t *testing.T, length, cached int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/render") {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"c","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":%d}}}`, length, cached)
			return
		}
		ids := make([]int, length)
		for i := range ids {
			ids[i] = i
		}
		text, err := json.Marshal(map[string]any{"request_id": "r", "token_ids": ids, "features": nil})
		if err != nil {
			t.Error(err)
		}
		w.Write(text)
	}
}

// stores lets an engine tell that it holds the first blocks of the prompt.
func (g *informed) stores(id string, blocks int) {
	g.Helper()
	e := kvindex.Stored{BlockSize: 16}
	for i := range blocks {
		e.Hashes = append(e.Hashes, uint64(i+1))
	}
	for i := range 16 * blocks {
		e.Tokens = append(e.Tokens, uint32(i))
	}
	if err := g.sources[id].Store(&e); err != nil {
		g.Fatal(err)
	}
}

const aboutCaches = `{"model":"m","messages":[{"role":"user","content":"What is a prefix cache, and why does it make the time to the first token shorter?"}]}`

func TestARequestGoesToWhomTheIndexSays(t *testing.T) {
	g := newInformed(t, 3, nil)
	g.stores("e1", 4)
	resp := g.post("/v1/chat/completions", aboutCaches)
	if at, tokens := resp.Header.Get("X-KVCA-Backend"), resp.Header.Get("X-KVCA-Predicted-Tokens"); at != "e1" || tokens != "64" {
		t.Errorf("went to %s with %s tokens predicted, want e1 with 64", at, tokens)
	}
	d := g.explain(aboutCaches)
	if d.Backend != "e1" || d.Index != "whole" || d.BlockUnit != "tokens" || d.ChainBlocks != 6 || d.MatchedBlocks != 4 {
		t.Errorf("explained as %+v", d)
	}
}

func TestWithoutASourceTheMapDecidesAndItIsSaid(t *testing.T) {
	g := newInformed(t, 2, nil)
	for _, s := range g.sources {
		s.SetLive(false)
	}
	resp := g.post("/v1/chat/completions", aboutCaches)
	if why := resp.Header.Get("X-KVCA-Fallback"); why != noSource {
		t.Errorf("fallback %q, want %q", why, noSource)
	}
	if got := g.metric(`kvca_index_fallback_total{reason="no_source"}`); got != 1 {
		t.Errorf("%v fallbacks counted, want 1", got)
	}
}

// When whoever told of a model goes, nobody is to believe that nothing has changed.
func TestTheLossOfAnIndexIsSaid(t *testing.T) {
	clock := time.Duration(0)
	g := newInformed(t, 2, func(c *KnowledgeConfig) { c.Now = func() time.Duration { return clock } })
	g.post("/v1/chat/completions", aboutCaches)
	for _, b := range g.pool.All() {
		g.sources[b.ID].Close()
		b.SetPrecise(false)
	}
	resp := g.post("/v1/chat/completions", aboutCaches)
	if why := resp.Header.Get("X-KVCA-Fallback"); why != noSource {
		t.Errorf("fallback %q, want %q", why, noSource)
	}
	var s clusterStatus
	g.getJSON("/cluster/status", &s)
	if s.Index.Status != "lost" || len(s.Index.Lost) != 1 || s.Index.Lost[0] != "m" {
		t.Errorf("status of the index: %+v, want the model m to be lost", s.Index)
	}
	clock += lossSaid
	if resp := g.post("/v1/chat/completions", aboutCaches); resp.Header.Get("X-KVCA-Index") != "" {
		t.Errorf("%v later it is still said: %v", lossSaid, resp.Header)
	}
}

func TestEngineThatCantTokenizeIsAFallback(t *testing.T) {
	g := newInformed(t, 2, nil)
	for _, e := range g.engines {
		e.answer(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/completions") {
				chatAnswer(w, r)
				return
			}
			http.NotFound(w, r)
		})
	}
	resp := g.post("/v1/chat/completions", aboutCaches)
	if why := resp.Header.Get("X-KVCA-Fallback"); resp.StatusCode != 200 || why != prompt.NoTokenizer {
		t.Errorf("status %d, fallback %q, want 200 and %q", resp.StatusCode, why, prompt.NoTokenizer)
	}
}

func TestAPrivateCacheKeyIsNoBusinessOfTheIndex(t *testing.T) {
	g := newInformed(t, 2, nil)
	g.stores("e0", 4)
	body := strings.Replace(aboutCaches, `"model"`, `"extra_key":"tenant-1","model"`, 1)
	if why := g.post("/v1/chat/completions", body).Header.Get("X-KVCA-Fallback"); why != privateKey {
		t.Errorf("fallback %q, want %q", why, privateKey)
	}
}

// The salt is part of a block's name: another tenant's blocks are no hit.
func TestASaltedRequestMatchesItsOwnBlocksOnly(t *testing.T) {
	g := newInformed(t, 1, nil)
	g.stores("e0", 4)
	salted := strings.Replace(aboutCaches, `"model"`, `"cache_salt":"s1","model"`, 1)
	if d := g.explain(salted); d.PredictedTokens != 0 || d.Index != "whole" {
		t.Errorf("a salted prompt: %+v, want nothing held", d)
	}
	e := kvindex.Stored{Hashes: []uint64{91}, BlockSize: 16, Salt: "s1"}
	for i := range 16 {
		e.Tokens = append(e.Tokens, uint32(i))
	}
	if err := g.sources["e0"].Store(&e); err != nil {
		t.Fatal(err)
	}
	if d := g.explain(salted); d.PredictedTokens != 16 {
		t.Errorf("a salted prompt: %+v, want its own block", d)
	}
}

func TestEvictedBlocksAreForgotten(t *testing.T) {
	g := newInformed(t, 1, nil)
	g.stores("e0", 5)
	g.engines[0].answer(g.renders(t, 100, 32))
	g.post("/v1/chat/completions", aboutCaches)
	if d := g.explain(aboutCaches); d.PredictedTokens != 32 {
		t.Errorf("predicted %d tokens after the engine reported 32, want 32", d.PredictedTokens)
	}
	if got := g.metric(`kvca_index_wrong_total{backend="e0",reported="less"}`); got != 1 {
		t.Errorf("%v wrong predictions counted, want 1", got)
	}
}

func TestAnIndexThatIsWrongAllTheTimeIsLeftAlone(t *testing.T) {
	clock := time.Duration(0)
	g := newInformed(t, 1, func(c *KnowledgeConfig) {
		c.Now = func() time.Duration { return clock }
		c.Logger = slog.New(slog.DiscardHandler) // it warns, as it should
	})
	g.engines[0].answer(g.renders(t, 100, 80)) // and the index knows of none
	for range creditLeast {
		if why := g.post("/v1/chat/completions", aboutCaches).Header.Get("X-KVCA-Fallback"); why != "" {
			t.Fatalf("fallback %q before %d answers", why, creditLeast)
		}
	}
	if why := g.post("/v1/chat/completions", aboutCaches).Header.Get("X-KVCA-Fallback"); why != distrusted {
		t.Errorf("fallback %q after %d wrong predictions, want %q", why, creditLeast, distrusted)
	}
	clock += firstBan
	if why := g.post("/v1/chat/completions", aboutCaches).Header.Get("X-KVCA-Fallback"); why != "" {
		t.Errorf("fallback %q after %v, want another try", why, firstBan)
	}
}

func TestOtherLengthsThanLookedUpAreWrongToo(t *testing.T) {
	g := newInformed(t, 1, nil)
	render := g.renders(t, 100, 0)
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/render") {
			render(w, r)
			return
		}
		g.renders(t, 101, 0)(w, r)
	})
	g.post("/v1/chat/completions", aboutCaches)
	if got := g.metric("kvca_index_length_mismatch_total"); got != 1 {
		t.Errorf("%v mismatches of length counted, want 1", got)
	}
}

func TestOfSeveralPromptsNothingIsJudged(t *testing.T) {
	g := newInformed(t, 1, nil)
	g.engines[0].answer(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/render") {
			io.WriteString(w, `[{"token_ids":[0,1,2]},{"token_ids":[3,4]}]`)
			return
		}
		g.renders(t, 5, 0)(w, r)
	})
	for _, body := range []string{
		`{"model":"m","prompt":["some text","other text"]}`,
		`{"model":"m","prompt":[ [0,1,2] , [3,4] ]}`,
	} {
		g.post("/v1/completions", body)
		if got := g.metric("kvca_index_length_mismatch_total"); got != 0 {
			t.Errorf("%s: %v mismatches of length counted, want 0", body, got)
		}
	}
	g.post("/v1/completions", `{"model":"m","prompt":[ [0,1,2] ]}`)
	if got := g.metric("kvca_index_length_mismatch_total"); got != 1 {
		t.Errorf("%v mismatches of length counted of one prompt in a list, want 1", got)
	}
}

func TestLoadDecidesWhereNothingIsToBeBelieved(t *testing.T) {
	g := newInformed(t, 2, func(c *KnowledgeConfig) { c.Unbelieved = map[string]bool{"m": true} })
	g.post("/v1/chat/completions", aboutCaches)
	for _, s := range g.sources {
		s.SetLive(false)
	}
	if d := g.explain(aboutCaches); d.Reason != router.ReasonMiss || d.Fallback != noSource {
		t.Errorf("%+v, want a miss: nothing is to be believed", d)
	}
}

func TestTheIndexIsListedPageByPage(t *testing.T) {
	g := newInformed(t, 2, nil)
	g.stores("e0", 6)
	g.stores("e1", 3)
	seen, pages := 0, 0
	shared := 0
	for cursor := ""; ; {
		var page struct {
			Status     string   `json:"status"`
			BlockCount int      `json:"block_count"`
			Models     []string `json:"models"`
			Next       string   `json:"next"`
			Blocks     []kvBlock
		}
		g.getJSON("/internal/kv-index?limit=2&tier=gpu&model=m&cursor="+cursor, &page)
		if page.Status != "live" || page.BlockCount != 6 || len(page.Models) != 1 {
			t.Fatalf("%+v", page)
		}
		for _, b := range page.Blocks {
			seen++
			if b.Tier != "gpu" || b.TokenCount != 16 || len(b.TokenSample) != 2 || b.TokenSample[1] != b.TokenSample[0]+1 {
				t.Errorf("block %+v", b)
			}
			if len(b.Workers) == 2 {
				shared++
			}
		}
		if pages++; pages > 6 {
			t.Fatal("the pages don't end")
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if seen != 6 || shared != 3 {
		t.Errorf("%d blocks, %d of both workers, want 6 and 3", seen, shared)
	}
	for query, code := range map[string]int{"worker=e9": 404, "tier=tape": 400, "limit=0": 400, "limit=x": 400, "cursor=x": 400} {
		resp, err := http.Get(g.admin.URL + "/internal/kv-index?" + query)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("%s: status %d, want %d", query, resp.StatusCode, code)
		}
	}
}

func TestCreditIsEarnedAgain(t *testing.T) {
	c := newCredit()
	wrong := func(n int, now time.Duration) (ban time.Duration) {
		for range n {
			ban = max(ban, c.saw("m", true, now))
		}
		return ban
	}
	if ban := wrong(creditLeast-1, 0); ban != 0 {
		t.Fatalf("banned for %v before there was evidence", ban)
	}
	if ban := wrong(1, 0); ban != firstBan || c.may("m", firstBan-1) || !c.may("m", firstBan) {
		t.Fatalf("banned for %v, want %v", ban, firstBan)
	}
	if ban := wrong(creditLeast, firstBan); ban != 2*firstBan {
		t.Errorf("banned for %v the second time, want twice as long", ban)
	}
	now := 10 * firstBan
	for range creditWindow {
		c.saw("m", false, now)
	}
	if ban := wrong(creditWindow, now); ban != firstBan {
		t.Errorf("banned for %v after a good time, want %v", ban, firstBan)
	}
	if got := c.banned(now); len(got) != 1 || got[0] != "m" {
		t.Errorf("banned %v", got)
	}
}

// post sends a request and reads the answer to its end, so that what it teaches has
// been learned.
func (g *informed) post(path, body string) *http.Response {
	g.Helper()
	resp := g.rig.post(path, body)
	read(g, resp)
	return resp
}

func (g *informed) explain(body string) (d router.Decision) {
	g.Helper()
	status, text := g.adminDo(http.MethodPost, "/explain", body)
	if err := json.Unmarshal([]byte(text), &d); err != nil || status != http.StatusOK {
		g.Fatalf("explain: status %d, %s", status, text)
	}
	return d
}

func (g *informed) getJSON(path string, into any) {
	g.Helper()
	status, text := g.adminDo(http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(text), into); err != nil || status != http.StatusOK {
		g.Fatalf("GET %s: status %d, %s", path, status, text)
	}
}

// metric is the value of one series.
func (g *informed) metric(series string) (value float64) {
	g.Helper()
	for line := range strings.Lines(g.metrics()) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				g.Fatal(err)
			}
			return value
		}
	}
	g.Fatalf("no series %s", series)
	return 0
}
