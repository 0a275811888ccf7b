package prompt

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"kvca/state/cbr"
	"kvca/state/virtualtime"
)

func state(r Report, w way) string { return r.Ways[w].State }

func TestLocalIsUsedOnceProven(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{Local: withLocal(trueLocal)})
	want(t, s, chat(1, e), FromRender, hiIDs)
	r := s.SelfTest(t.Context(), "m", []Engine{e})
	if r.Way != "local" || state(r, wayRender) != "ready" || state(r, wayTokenize) != "ready" || r.Problem != "" {
		t.Errorf("report is %+v", r)
	}
	before := len(e.questions())
	want(t, s, chat(2, e), FromLocal, hiIDs)
	want(t, s, chat(3), FromLocal, hiIDs)
	if len(e.questions()) != before {
		t.Error("the engine was asked")
	}
}

func TestLocalThatDiffersIsNotUsed(t *testing.T) {
	for name, wrong := range map[string]localDouble{
		"one probe": func(endpoint cbr.Endpoint, body []byte) ([]uint32, error) {
			ids, err := trueLocal(endpoint, body)
			if strings.Contains(string(body), "Oslo") {
				ids = append(ids, 1)
			}
			return ids, err
		},
		"cannot do one": func(endpoint cbr.Endpoint, body []byte) ([]uint32, error) {
			if endpoint == cbr.Completions {
				return nil, errors.New("no")
			}
			return trueLocal(endpoint, body)
		},
	} {
		e := &double{id: "a", handler: vllm()}
		s := newService(t, Config{Local: withLocal(wrong)})
		r := s.SelfTest(t.Context(), "m", []Engine{e})
		if got := r.Ways[wayLocal]; r.Way != "render" || got.State != "mismatch" && got.State != "unproven" || got.Problem == "" {
			t.Errorf("%s: report is %+v", name, r)
		}
		want(t, s, chat(1, e), FromRender, hiIDs)
	}
}

func TestPreferenceSaysWhenLocalIsUsed(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{Local: withLocal(trueLocal), Preference: PreferLocal})
	want(t, s, chat(1, e), FromLocal, hiIDs)

	s = newService(t, Config{Local: withLocal(trueLocal), Preference: PreferEngine})
	if r := s.SelfTest(t.Context(), "m", []Engine{e}); r.Way != "render" {
		t.Errorf("way is %q, want render", r.Way)
	}
	want(t, s, chat(1, e), FromRender, hiIDs)
	e.kill(true)
	want(t, s, chat(2, e), FromLocal, hiIDs)
}

func TestLocalThatFailsLeavesItToTheEngine(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{Preference: PreferLocal, Local: withLocal(func(cbr.Endpoint, []byte) ([]uint32, error) { return nil, errors.New("no") })})
	want(t, s, chat(1, e), FromRender, hiIDs)
	wantFailure(t, s, chat(2), NoTokenizer)
}

func TestTokenizerThatDiffersFromTheRendererIsNotUsed(t *testing.T) {
	handler := vllm()
	handler["/tokenize"] = func(w http.ResponseWriter, _ *http.Request, body map[string]json.RawMessage) {
		reply(w, map[string]any{"tokens": append(ids(body["messages"], body["prompt"]), 1)})
	}
	e := &double{id: "a", handler: handler}
	s := newService(t, Config{})
	r := s.SelfTest(t.Context(), "m", []Engine{e})
	if r.Way != "render" || state(r, wayTokenize) != "mismatch" || !strings.HasPrefix(r.Ways[wayTokenize].Problem, "probe plain") {
		t.Errorf("report is %+v", r)
	}
	delete(handler, chatRender)
	wantFailure(t, s, chat(1, e), Mismatch)
}

func TestSelfTestFindsTheDialect(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.Handler
		way     string
		absent  []way
	}{
		"vllm":     {vllm(), "render", nil},
		"sglang":   {tokenizerOnly(), "tokenize", []way{wayRender}},
		"llamacpp": {llamaCPP(), "llamacpp", []way{wayRender, wayTokenize}},
		"tgi":      {tgi(), "tgi", []way{wayRender, wayTokenize, wayLlamaCPP}},
		"none":     {routes{}, "", []way{wayRender, wayTokenize, wayLlamaCPP, wayTGI}},
	} {
		e := &double{id: "a", handler: c.handler}
		s := newService(t, Config{})
		r := s.SelfTest(t.Context(), "m", []Engine{e})
		if r.Way != c.way || (r.Way == "") != (r.Problem != "") {
			t.Errorf("%s: report is %+v", name, r)
		}
		for w := range wayLocal {
			if got := state(r, w) == "absent"; got != slices.Contains(c.absent, w) {
				t.Errorf("%s: %s is %s (%s)", name, w, state(r, w), r.Ways[w].Problem)
			}
		}
		before := len(e.questions())
		if c.way == "" {
			wantFailure(t, s, chat(1, e), NoTokenizer)
		} else if _, f := s.Tokens(t.Context(), chat(1, e)); f != nil {
			t.Errorf("%s: %v", name, f)
		}
		if n := len(e.questions()) - before; n > 2 {
			t.Errorf("%s: %d questions for one request after a self-test", name, n)
		}
	}
}

func TestProbeThatTheEngineRefusesIsLeftOut(t *testing.T) {
	inner := vllm()
	e := &double{id: "a", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 500 {
			http.Error(w, "tools need a parser", http.StatusBadRequest)
			return
		}
		inner.ServeHTTP(w, r)
	})}
	s := newService(t, Config{Local: withLocal(trueLocal)})
	r := s.SelfTest(t.Context(), "m", []Engine{e})
	if r.Way != "local" || !strings.Contains(r.Ways[wayRender].Problem, "not tested: tools") {
		t.Errorf("report is %+v", r)
	}
}

func TestSelfTestOfDeadEngineChangesNothing(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{Local: withLocal(trueLocal)})
	s.SelfTest(t.Context(), "m", []Engine{e})
	e.kill(true)
	if r := s.SelfTest(t.Context(), "m", []Engine{e}); r.Way != "local" || !strings.Contains(r.Ways[wayRender].Problem, "refused") {
		t.Errorf("report is %+v", r)
	}
	if r := s.SelfTest(t.Context(), "n", nil); r.Way != "" || state(r, wayLocal) != "unproven" {
		t.Errorf("report without engines is %+v", r)
	}
	for i := range probes {
		if body := probes[i].body(`a"b`); !json.Valid(body) {
			t.Errorf("probe %s is not JSON: %s", probes[i].name, body)
		}
	}
}

func TestSelfTestIsBounded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		s := newTimed(t, Config{Local: withLocal(trueLocal)})
		begin := time.Now()
		r := s.SelfTest(t.Context(), "m", []Engine{&double{id: "a", handler: slow(time.Hour, vllm())}})
		if took := time.Since(begin); took > 15*time.Second || r.Way != "" {
			t.Errorf("took %v: %+v", took, r)
		}
	})
}
