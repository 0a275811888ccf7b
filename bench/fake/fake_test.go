package fake

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func fleet(t *testing.T, change func(*Config)) *Fleet {
	t.Helper()
	cfg := DefaultConfig()
	change(&cfg)
	f, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := f.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

func post(t *testing.T, ctx context.Context, url, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func TestFindMark(t *testing.T) {
	for _, c := range []struct {
		body string
		want mark
		ok   bool
	}{
		{"nothing here", mark{}, false},
		{"ab" + Marker(17, 3) + "c", mark{17, 3, 2}, true},
		{"ab" + Marker(17, 0) + "c" + Marker(17, 1), mark{17, 1, 2}, true},
		{"[[conv=", mark{}, false},
		{"[[conv=1 turn=2", mark{conversation: 1, turn: 2}, false},
	} {
		got, ok := findMark([]byte(c.body))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("findMark(%q) = %+v, %v, want %+v, %v", c.body, got, ok, c.want, c.ok)
		}
	}
}

func TestCacheHoldsBodiesTurnsAndSharedStarts(t *testing.T) {
	c := newCache()
	admit := func(body string) int {
		m, marked := findMark([]byte(body))
		return c.admit([]byte(body), m, marked)
	}
	first := "system" + Marker(1, 0)
	for _, step := range []struct {
		body string
		want int
	}{
		{"plain", 0},
		{"plain", 5},
		{first, 0},
		{first + "answer" + Marker(1, 1), len(first)},
		{"system" + Marker(2, 0), len("system")},
		{"other" + Marker(3, 0), 0},
	} {
		if got := admit(step.body); got != step.want {
			t.Errorf("admit(%q) = %d, want %d", step.body, got, step.want)
		}
	}
}

func TestAnswersWholeAndStreamed(t *testing.T) {
	f := fleet(t, func(c *Config) { c.Backends = 2; c.Chunks = 5 })
	whole, err := post(t, t.Context(), f.URLs()[0], `{"messages":[]}`)
	if err != nil || !strings.HasSuffix(whole, `"prompt_tokens_details":{"cached_tokens":0}}}`) {
		t.Errorf("whole answer %q, %v", whole, err)
	}
	stream, err := post(t, t.Context(), f.URLs()[1], `{"stream":true,"messages":[]}`)
	if err != nil || strings.Count(stream, "data: {") != 5 || !strings.HasSuffix(stream, "data: [DONE]\n\n") {
		t.Errorf("stream %q, %v", stream, err)
	}
	stats, err := Fetch(t.Context(), f.URLs()[0])
	if err != nil || len(stats.Backends) != 2 || stats.Backends[0].Requests != 1 || stats.Backends[1].Requests != 1 {
		t.Errorf("stats %+v, %v", stats, err)
	}
}

func TestLeavingClientIsCounted(t *testing.T) {
	f := fleet(t, func(c *Config) { c.Backends = 1; c.Delay = time.Minute })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := post(t, ctx, f.URLs()[0], Marker(5, 0)); err == nil {
		t.Fatal("an answer came before its delay")
	}
	for range 100 {
		if s := f.Stats(); len(s.Served) == 1 && s.Backends[0].Active == 0 {
			if !s.Served[0].Cancelled || s.Backends[0].Cancelled != 1 {
				t.Errorf("stats %+v, want one cancelled", s)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the backend did not see that its client left")
}

func TestTokensOfAContinuedChatBeginAlike(t *testing.T) {
	first := string(appendTokens(nil, []byte(`{"model":"m","messages":[{"role":"user","content":"hello"}`)))
	longer := string(appendTokens(nil, []byte(`{"messages":[{"role":"user","content":"hello"},{"role":"assistant"}]}`)))
	if !strings.HasPrefix(longer, strings.TrimSuffix(first, "]")+",") {
		t.Errorf("%s does not continue %s", longer, first)
	}
}

func TestGarbageIsWhatTheSwitchSays(t *testing.T) {
	f := fleet(t, func(c *Config) { c.Backends = 1 })
	url := f.URLs()[0]
	for _, c := range []struct {
		kind     Garbage
		unread   bool // no response, or not all of it
		contains string
	}{
		{Noise, true, ""}, {Cut, true, "mess"}, {Failing, false, "CUDA"}, {Nonsense, false, "}]{"}, {Sound, false, "choices"},
	} {
		if err := Lie(t.Context(), url, c.kind); err != nil {
			t.Fatal(err)
		}
		text, err := post(t, t.Context(), url, `{"messages":[]}`)
		if (err != nil) != c.unread || !strings.Contains(text, c.contains) {
			t.Errorf("%v: %q, %v", c.kind, text, err)
		}
	}
}
