package live

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kvca/router"
)

// get asks a handler and reads its JSON into v.
func get(t testing.TB, h http.HandlerFunc, url string, v any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h(w, httptest.NewRequest(http.MethodGet, url, nil))
	if v != nil {
		if err := json.Unmarshal(w.Body.Bytes(), v); err != nil {
			t.Fatalf("GET %s: %v in %s", url, err, w.Body)
		}
	}
	return w.Code
}

func TestLiveAnswersFromASecondOn(t *testing.T) {
	l, c := newLive()
	first := c.at.Unix()
	for range 5 {
		l.Ended(sampleRecord())
		c.at = c.at.Add(time.Second)
	}
	for since, want := range map[string]int{"": 6, "?since=0": 6, fmt.Sprintf("?since=%d", first+4): 2, "?since=9000000000000000000": 0} {
		var a answer
		if code := get(t, l.ServeLive, "/live"+since, &a); code != http.StatusOK || len(a.List) != want {
			t.Errorf("/live%s: status %d, %d seconds, want %d", since, code, len(a.List), want)
		}
		if a.Now != first+5 || a.Minute.Over != 5 || a.Minute.Requests != 5 || a.Minute.Reasons["hit"] != 5 {
			t.Errorf("/live%s: %+v", since, a)
		}
	}
}

func TestAnAnswerNeverHasMoreThanTenMinutes(t *testing.T) {
	l, c := newLive()
	for range 2 * window {
		l.Ended(sampleRecord())
		c.at = c.at.Add(time.Second)
	}
	var a answer
	get(t, l.ServeLive, "/live", &a)
	if len(a.List) != window || a.Minute.Over != 60 || a.Minute.Requests != 60 {
		t.Errorf("%d seconds, minute %+v", len(a.List), a.Minute)
	}
}

func TestDecisionsAreAnsweredInPages(t *testing.T) {
	l, _ := newLive()
	r := sampleRecord()
	r.Decision.Candidates = []router.Candidate{{Backend: "b"}}
	for range 300 {
		l.Ended(r)
	}
	for query, want := range map[string]struct {
		first, last uint64
		candidates  int
	}{
		"":                           {251, 300, 0},
		"?limit=200":                 {101, 300, 0},
		"?after=298":                 {299, 300, 0},
		"?after=10&limit=3":          {298, 300, 0},
		"?after=299&details=true":    {300, 300, 1},
		"?seq=200":                   {200, 200, 1},
		"?seq=100":                   {},
		"?seq=301":                   {},
		"?after=300":                 {},
		"?after=9000000000000000000": {},
	} {
		var a struct {
			Newest    uint64
			Decisions []Decision
		}
		if code := get(t, l.ServeDecisions, "/decisions"+query, &a); code != http.StatusOK || a.Newest != 300 {
			t.Fatalf("%s: status %d, newest %d", query, code, a.Newest)
		}
		if len(a.Decisions) == 0 {
			if want.last != 0 {
				t.Errorf("%s: no decision", query)
			}
			continue
		}
		if got := a.Decisions; got[0].Seq != want.first || got[len(got)-1].Seq != want.last || len(got) != int(want.last-want.first+1) ||
			len(got[0].Decision.Candidates) != want.candidates || got[0].Listed != 1 {
			t.Errorf("%s: %d decisions from %d to %d with %d candidates, want %+v", query, len(got), got[0].Seq, got[len(got)-1].Seq, len(got[0].Decision.Candidates), want)
		}
	}
}

func TestQueriesThatCanNotBeAreRefused(t *testing.T) {
	l, _ := newLive()
	for url, h := range map[string]http.HandlerFunc{
		"/live?since=-1": l.ServeLive, "/live?since=99999999999999999999": l.ServeLive,
		"/decisions?after=x": l.ServeDecisions, "/decisions?limit=0": l.ServeDecisions,
		"/decisions?limit=201": l.ServeDecisions, "/decisions?seq=1.5": l.ServeDecisions,
	} {
		var a struct {
			Error struct{ Code, Message, Param string }
		}
		if code := get(t, h, url, &a); code != http.StatusBadRequest || !strings.HasPrefix(a.Error.Code, "invalid_") || a.Error.Message == "" {
			t.Errorf("%s: status %d, %+v", url, code, a)
		}
	}
}
