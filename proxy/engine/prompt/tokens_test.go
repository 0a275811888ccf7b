package prompt

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvca/state/cbr"
	"kvca/state/virtualtime"
)

func TestRendererIsAskedFirstWithTheSameBytes(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{})
	r := chat(1, e)
	r.LoRA, r.Salt = "adapter", "salt"
	a := want(t, s, r, FromRender, hiIDs)
	if got := e.last(); got != (question{chatRender, hi}) {
		t.Errorf("asked %+v, want the renderer with the body as it is", got)
	}
	if a.Prompt.LoRA != "adapter" || a.Prompt.Salt != "salt" {
		t.Errorf("prompt has LoRA %q and salt %q", a.Prompt.LoRA, a.Prompt.Salt)
	}
}

func TestKnownPromptAsksNobody(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{})
	want(t, s, chat(1, e), FromRender, hiIDs)
	want(t, s, chat(1, e), FromCache, hiIDs)
	if n := len(e.questions()); n != 1 {
		t.Errorf("%d questions, want 1", n)
	}
}

func TestPromptWithoutKeyIsNotRemembered(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{})
	want(t, s, chat(0, e), FromRender, hiIDs)
	want(t, s, chat(0, e), FromRender, hiIDs)
	if st := s.Stats(); st.CacheEntries != 0 {
		t.Errorf("%d entries in the cache", st.CacheEntries)
	}
}

func TestAbsentWayIsTriedAgainLater(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusMethodNotAllowed} {
		virtualtime.Test(t, func(t *testing.T) {
			e := &double{id: "a"}
			e.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == chatRender {
					w.WriteHeader(status)
					return
				}
				tokenizerOnly().ServeHTTP(w, r)
			})
			s := newTimed(t, Config{})
			want(t, s, chat(1, e), FromTokenize, hiIDs)
			want(t, s, chat(2, e), FromTokenize, hiIDs)
			if got := e.questions(); !slices.Equal(got, []string{chatRender, "/tokenize", "/tokenize"}) {
				t.Fatalf("asked %v", got)
			}
			e.handler = vllm()
			time.Sleep(6 * time.Minute)
			want(t, s, chat(3, e), FromRender, hiIDs)
		})
	}
}

func TestTokenIDsNeedNobody(t *testing.T) {
	s := newService(t, Config{})
	for body, tokens := range map[string][]uint32{
		`{"prompt":[1, 2,4294967295],"model":"m"}`:       {1, 2, 4294967295},
		`{"model":"m","prompt":[[7,8],[9]]}`:             {7, 8},
		`{"prompt":"x","prompt":[5],"max_tokens":[[1]]}`: {5},
	} {
		want(t, s, &Request{Endpoint: cbr.Completions, Model: "m", Body: []byte(body)}, FromBody, tokens)
	}
	for _, body := range []string{`{"prompt":[1,-2]}`, `{"prompt":[]}`, `{"prompt":[1.5]}`, `{"prompt":[4294967296]}`, `{"prompt":["a"]}`, `{"prompt":[1`, `{"prompt":[1],"truncate_prompt_tokens":5}`, `[1]`, ``} {
		wantFailure(t, s, &Request{Endpoint: cbr.Completions, Model: "m", Body: []byte(body)}, NoTokenizer)
	}
}

func TestReasons(t *testing.T) {
	const image = `{"model":"m","messages":[{"role":"user","content":["see",{"type":"image_url","image_url":{"url":"x"}}]}]}`
	for name, c := range map[string]struct {
		handler  http.Handler
		endpoint cbr.Endpoint
		body     string
		reason   string
	}{
		"no engine":           {nil, cbr.Chat, hi, NoTokenizer},
		"no way":              {routes{}, cbr.Chat, hi, NoTokenizer},
		"other endpoint":      {vllm(), cbr.Responses, hi, UnsupportedEndpoint},
		"refused":             {always(http.StatusBadRequest, "no"), cbr.Chat, hi, EngineError},
		"broken":              {always(http.StatusInternalServerError, "no"), cbr.Chat, hi, EngineError},
		"unauthorized":        {always(http.StatusUnauthorized, "no"), cbr.Chat, hi, EngineError},
		"garbage":             {always(http.StatusOK, `{"token_ids":[1,"x"]}`), cbr.Chat, hi, EngineError},
		"cut off":             {always(http.StatusOK, `{"token_ids":[1,2]`), cbr.Chat, hi, EngineError},
		"too many tokens":     {always(http.StatusOK, `{"token_ids":[1`+strings.Repeat(",1", 9000)+`]}`), cbr.Chat, hi, EngineError},
		"no messages":         {tokenizerOnly(), cbr.Chat, `{"model":"m"}`, UnsupportedEndpoint},
		"truncation":          {tokenizerOnly(), cbr.Chat, `{"messages":[1],"truncate_prompt_tokens":-1}`, UnsupportedEndpoint},
		"ids for the decoder": {tokenizerOnly(), cbr.Chat, `{"messages":[1],"kv_transfer_params":{"prompt_token_ids":[1]}}`, UnsupportedEndpoint},
		"image, no renderer":  {tokenizerOnly(), cbr.Chat, image, MediaUnknown},
		"image, unexpanded":   {vllm(), cbr.Chat, image, MediaUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, Config{})
			r := &Request{Endpoint: c.endpoint, Body: []byte(c.body), Model: "m", Key: 1}
			if c.handler != nil {
				r.Engines = []Engine{&double{id: "a", handler: c.handler}}
			}
			wantFailure(t, s, r, c.reason)
			if st := s.Stats(); st.Failures[c.reason] != 1 || st.CacheEntries != 0 {
				t.Errorf("stats are %+v", st)
			}
		})
	}
}

func TestMediaComeWithTheirPlaces(t *testing.T) {
	e := &double{id: "a", handler: always(http.StatusOK, `{"features":{"kwargs_data":{"x":["`+strings.Repeat("A", 9000)+`"]},
		"mm_placeholders":{"image":[{"length":3,"offset":9},{"offset":1,"length":2,"is_embed":null}],"audio":[{"offset":5,"length":1}],"video":null},
		"mm_hashes":{"audio":["c"],"image":["b","a"]}},"token_ids":[1,2,3],"cache_salt":"s"}`)}
	s := newService(t, Config{})
	r := chat(1, e)
	r.Body = []byte(`{"messages":[{"content":[{"type":"image_url"}]}]}`)
	p := want(t, s, r, FromRender, []uint32{1, 2, 3}).Prompt
	if len(p.Media) != 3 || p.Media[0].ID != "a" || p.Media[0].Offset != 1 || p.Media[0].Length != 2 || p.Media[1].ID != "c" || p.Media[2].ID != "b" {
		t.Errorf("media are %+v", p.Media)
	}
	if p.Salt != "s" {
		t.Errorf("salt is %q", p.Salt)
	}
}

func TestImageInAToolIsNoMedia(t *testing.T) {
	e := &double{id: "a", handler: tokenizerOnly()}
	s := newService(t, Config{})
	r := chat(1, e)
	r.Body = []byte(`{"messages":[{"role":"user","content":"\"image_url\""},{"content":[{"type":"text","text":"image"}],"image_url":1}],"tools":[{"image_url":{"type":"image"}}]}`)
	if a, f := s.Tokens(t.Context(), r); f != nil || a.Source != FromTokenize {
		t.Errorf("got %v, %v", a.Source, f)
	}
}

func TestLateTokensServeTheNextTurn(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Second, vllm())}
		s := newTimed(t, Config{})
		begin := time.Now()
		wantFailure(t, s, chat(1, e), Deadline)
		if waited := time.Since(begin); waited != 20*time.Millisecond {
			t.Errorf("waited %v, want the budget of 20ms", waited)
		}
		if st := s.Stats(); st.Background != 1 || st.InFlight != 1 || st.BodyBytes != int64(len(hi)) {
			t.Errorf("stats are %+v", st)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		next := chat(2, e)
		next.Earlier = []uint64{9, 1, 8}
		if a := want(t, s, next, FromEarlier, hiIDs); a.Miss.Reason != Deadline {
			t.Errorf("miss is %v", a.Miss)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		want(t, s, chat(1, e), FromCache, hiIDs)
		want(t, s, chat(2, e), FromCache, hiIDs)
		st := s.Stats()
		if st.Background != 0 || st.InFlight != 0 || st.BodyBytes != 0 || len(s.flights) != 0 || len(s.busy) != 0 {
			t.Errorf("something is left: %+v", st)
		}
		if st.Failures[Deadline] != 1 || st.Misses[Deadline] != 1 || st.Requests[FromEarlier] != 1 || st.Requests[FromCache] != 2 {
			t.Errorf("counts are %+v", st)
		}
		if st.Searches.Count != 2 || st.Searches.Sum != 2*time.Second || st.Waited.Sum != 40*time.Millisecond {
			t.Errorf("timings are %+v, %+v", st.Searches, st.Waited)
		}
	})
}

func TestBudgetGrowsWithThePrefill(t *testing.T) {
	c := Config{}.withDefaults(1)
	for bytes, want := range map[int64]time.Duration{
		0: 20 * time.Millisecond, 8_000: 20 * time.Millisecond, 64_000: 60 * time.Millisecond,
		400_000: 250 * time.Millisecond, 1 << 62: 250 * time.Millisecond,
	} {
		if got := c.budget(bytes); got.Round(time.Microsecond) != want {
			t.Errorf("%d bytes: budget %v, want %v", bytes, got, want)
		}
	}
}

func TestBackgroundIsBounded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Second, vllm())}
		s := newTimed(t, Config{MaxBackground: 2})
		for key := range uint64(4) {
			wantFailure(t, s, chat(key+1, e), Deadline)
		}
		synctest.Wait()
		if st := s.Stats(); st.Background != 2 || st.InFlight != 2 {
			t.Errorf("%d in the background of %d in flight, want 2 of 2", st.Background, st.InFlight)
		}
	})
}

func TestFlightEndsAfterItsTimeout(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Hour, vllm())}
		s := newTimed(t, Config{})
		wantFailure(t, s, chat(1, e), Deadline)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := s.Stats(); st.InFlight != 0 || st.Background != 0 {
			t.Errorf("stats are %+v", st)
		}
	})
}

func TestClientThatLeavesEndsItsFlight(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Second, vllm())}
		s := newTimed(t, Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, f := s.Tokens(ctx, chat(1, e)); f == nil || f.Reason != Deadline {
			t.Errorf("got %v", f)
		}
		synctest.Wait()
		if st := s.Stats(); st.InFlight != 0 {
			t.Errorf("%d in flight", st.InFlight)
		}
	})
}

func TestEqualRequestsShareACall(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(10*time.Millisecond, vllm())}
		s := newTimed(t, Config{})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if a, f := s.Tokens(t.Context(), chat(1, e)); f != nil || !slices.Equal(a.Prompt.Tokens, hiIDs) {
					t.Errorf("got %v, %v", a, f)
				}
			})
		}
		all.Wait()
		if n := len(e.questions()); n != 1 {
			t.Errorf("%d calls for equal requests, want 1", n)
		}
	})
}

func TestWaiterThatStaysKeepsTheFlight(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(100*time.Millisecond, vllm())}
		s := newTimed(t, Config{MaxBackground: 1})
		wantFailure(t, s, chat(7, e), Deadline) // takes the only place in the background
		short, long := chat(1, e), chat(1, e)
		long.Bytes = 1 << 20
		var both sync.WaitGroup
		both.Go(func() { want(t, s, long, FromRender, hiIDs) })
		both.Go(func() { wantFailure(t, s, short, Deadline) })
		both.Wait()
	})
}

func TestBusyEngineIsNotQueuedFor(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Second, vllm())}
		s := newTimed(t, Config{MaxPerEngine: 2})
		wantFailure(t, s, chat(1, e), Deadline)
		wantFailure(t, s, chat(2, e), Deadline)
		begin := time.Now()
		wantFailure(t, s, chat(3, e), Overloaded)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("waited %v", waited)
		}
		time.Sleep(2 * time.Second)
		want(t, s, chat(2, e), FromCache, hiIDs)
	})
}

func TestBodiesInFlightAreBounded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Second, vllm())}
		s := newTimed(t, Config{MaxBodyBytes: int64(len(hi))})
		wantFailure(t, s, chat(1, e), Deadline)
		wantFailure(t, s, chat(2, e), Overloaded)
	})
}

func TestNextEngineOnlyForOneThatDoesNotAnswer(t *testing.T) {
	dead := &double{id: "a", handler: vllm(), dead: true}
	s := newService(t, Config{})
	broken := &double{id: "b", handler: always(http.StatusBadGateway, "")}
	well := &double{id: "c", handler: vllm()}
	for key := range uint64(20) {
		want(t, s, chat(key+1, dead, broken, well), FromRender, hiIDs)
	}
	if len(dead.questions()) == 0 || len(broken.questions()) == 0 {
		t.Errorf("asked %d and %d times: the choice does not spread", len(dead.questions()), len(broken.questions()))
	}
	picky := &double{id: "d", handler: always(http.StatusBadRequest, "no")}
	before := len(well.questions())
	wantFailure(t, s, chat(0, picky, picky), EngineError)
	if len(picky.questions()) != 1 || len(well.questions()) != before {
		t.Error("an engine that refused was not the last one asked")
	}
	wantFailure(t, s, chat(100, dead, dead, dead, dead, dead), EngineError)
}

func TestSamePromptAsksTheSameEngine(t *testing.T) {
	a, b := &double{id: "a", handler: vllm()}, &double{id: "b", handler: vllm()}
	for key := range uint64(50) {
		x, y := turns(key+1, []Engine{a, b}), turns(key+1, []Engine{b, a})
		if x[0] != y[0] {
			t.Fatalf("key %d: the choice depends on the order of engines", key+1)
		}
	}
}

func TestEngineThatBreaksOffIsNotTheLastOne(t *testing.T) {
	s := newService(t, Config{})
	cut := &cutter{double{id: "a"}}
	f := wantFailure(t, s, chat(1, cut), EngineError)
	if !strings.Contains(f.Error(), "reset by peer") {
		t.Errorf("failure is %v", f)
	}
	well := &double{id: "b", handler: vllm()}
	for key := range uint64(10) {
		want(t, s, chat(key+2, cut, well), FromRender, hiIDs)
	}
}

func TestCallerMayUseItsBodyAgain(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a"}
		e.handler = slow(50*time.Millisecond, vllm())
		s := newTimed(t, Config{})
		r := chat(1, e)
		wantFailure(t, s, r, Deadline)
		for i := range r.Body {
			r.Body[i] = 'x'
		}
		time.Sleep(time.Second)
		want(t, s, chat(1, e), FromCache, hiIDs)
	})
}

func TestClosedServiceKnowsWhatItKnew(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: vllm()}
		s := newTimed(t, Config{})
		want(t, s, chat(1, e), FromRender, hiIDs)
		e.handler = slow(time.Second, vllm())
		wantFailure(t, s, chat(2, e), Deadline)
		begin := time.Now()
		s.Close()
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("Close took %v", waited)
		}
		want(t, s, chat(1, e), FromCache, hiIDs)
		wantFailure(t, s, chat(3, e), EngineError)
	})
}

func TestConfigNamesAllFaults(t *testing.T) {
	_, err := New(Config{Budget: -1, BudgetShare: 2, CacheBytes: -1, Preference: "both"})
	for _, name := range []string{"Budget is", "BudgetShare is 2", "CacheBytes is -1", `Preference is "both"`} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not say %q", err, name)
		}
	}
}

func TestEverythingAtOnce(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		engines := []Engine{
			&double{id: "a", handler: slow(5*time.Millisecond, vllm())}, &double{id: "b", handler: slow(30*time.Millisecond, tokenizerOnly())},
			&double{id: "c", handler: vllm(), dead: true}, &cutter{double{id: "d"}},
		}
		s := newTimed(t, Config{MaxPerEngine: 4, MaxBackground: 4, CacheBytes: 8 << 10, Local: withLocal(trueLocal)})
		var all sync.WaitGroup
		const workers, requests = 20, 50
		for w := range workers {
			all.Go(func() {
				for i := range requests {
					key := uint64(w*i%97 + 1)
					r := chat(key, engines...)
					r.Earlier = []uint64{key - 1}
					if a, f := s.Tokens(t.Context(), r); f == nil && !slices.Equal(a.Prompt.Tokens, hiIDs) {
						t.Errorf("got %v", a)
					}
					s.Learn(r, hiIDs)
					if i == 25 && w%5 == 0 {
						s.SelfTest(t.Context(), "m", engines)
					}
				}
			})
		}
		all.Wait()
		st := s.Stats()
		sum := uint64(0)
		for _, n := range st.Requests {
			sum += n
		}
		for _, n := range st.Failures {
			sum += n
		}
		if sum != workers*requests || st.Wrong != 0 || st.CacheBytes > 8<<10 {
			t.Errorf("%d requests counted: %+v", sum, st)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if st := s.Stats(); st.InFlight != 0 || st.Background != 0 || st.BodyBytes != 0 || len(s.busy) != 0 || len(s.flights) != 0 {
			t.Errorf("something is left: %+v", st)
		}
	})
}
