package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kvca/state/cbr"
	"kvca/state/virtualtime"
)

// endless is an engine whose answer begins with a text and never ends.
type endless struct {
	begin string
	read  int // bytes of its answers
}

func (e *endless) ID() string { return "a" }

func (e *endless) Do(context.Context, string, string, http.Header, []byte) (*http.Response, error) {
	r := io.MultiReader(strings.NewReader(e.begin), e)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(r)}, nil
}

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'A'
	}
	e.read += len(b)
	return len(b), nil
}

func TestAnswerThatIsMuchMoreThanThePromptIsNotRead(t *testing.T) {
	for _, begin := range []string{`{"request_id":"`, `{"token_ids":[1],"text":"`, `{"cache_salt":"`, `{"features":{"kwargs_data":"`} {
		e := &endless{begin: begin}
		most := int(answerBytes(2*len(hi)+4096, 0))
		f := wantFailure(t, newService(t, Config{}), chat(1, e), EngineError)
		if !strings.Contains(f.Error(), fmt.Sprintf("the answer exceeds %d bytes", most)) {
			t.Errorf("%s: failure is %v, want one about the answer's length", begin, f)
		}
		if e.read > most {
			t.Errorf("%s: %d bytes were read, want at most %d", begin, e.read, most)
		}
	}
}

func TestAnswersMayBeAsLongAsTheirPromptsNeed(t *testing.T) {
	for _, c := range []struct {
		ids, media int
		want       int64
	}{
		{0, 0, 1 << 20},
		{100_000, 0, 1<<20 + 1_600_000},
		{100_000, 2 << 20, 1<<20 + 1_600_000 + 16<<20},
		{8 << 20, 0, 64 << 20},
		{0, 1 << 30, 64 << 20},
	} {
		if got := answerBytes(c.ids, c.media); got != c.want {
			t.Errorf("%d ids, body of %d bytes with media: %d bytes, want %d", c.ids, c.media, got, c.want)
		}
	}
}

func TestTensorsOfAPictureAreReadOver(t *testing.T) {
	picture := strings.Repeat("A", 4<<20)
	e := &double{id: "a", handler: always(http.StatusOK, `{"features":{"kwargs_data":{"image":["`+strings.Repeat(picture, 10)+`"]},
		"mm_placeholders":{"image":[{"offset":1,"length":2}]},"mm_hashes":{"image":["b"]}},"token_ids":[1,2,3]}`)}
	r := chat(1, e)
	r.Body = []byte(`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"` + picture + `"}}]}]}`)
	want(t, newService(t, Config{}), r, FromRender, []uint32{1, 2, 3})
}

func TestCallsThatKeepFailingAreToldUntilOneWorks(t *testing.T) {
	broken := false
	inner := vllm()
	e := &double{id: "a", handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken {
			http.Error(w, "out of memory", http.StatusInternalServerError)
			return
		}
		inner.ServeHTTP(w, r)
	})}
	s := newService(t, Config{})
	render := func() WayReport { return s.Report("m").Ways[wayRender] }
	want(t, s, chat(1, e), FromRender, hiIDs)
	broken = true
	for i := range 5 {
		if r := render(); (r.Problem != "") != (i > fewFailures) {
			t.Errorf("after %d failures: %+v", i, r)
		}
		wantFailure(t, s, chat(uint64(2+i), e), EngineError)
	}
	if r := render(); r.State != "ready" || !strings.HasPrefix(r.Problem, "the last 5 calls failed: ") || !strings.Contains(r.Problem, "out of memory") {
		t.Errorf("report is %+v, want ready with how the last calls failed", r)
	}
	broken = false
	want(t, s, chat(9, e), FromRender, hiIDs)
	if r := render(); r.Problem != "" {
		t.Errorf("after a call that worked: %+v", r)
	}
}

func TestCallsThatRunOutOfTimeAreFailures(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		e := &double{id: "a", handler: slow(time.Hour, vllm())}
		s := newTimed(t, Config{})
		for i := range 3 {
			wantFailure(t, s, chat(uint64(1+i), e), Deadline)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if r := s.Report("m").Ways[wayRender]; !strings.HasPrefix(r.Problem, "the last 3 calls failed: ") {
			t.Errorf("report is %+v", r)
		}
	})
}

func TestLocalThatKeepsFailingIsTold(t *testing.T) {
	s := newService(t, Config{Preference: PreferLocal, Local: withLocal(func(cbr.Endpoint, []byte) ([]uint32, error) { return nil, errors.New("no merges") })})
	e := &double{id: "a", handler: vllm()}
	for i := range 3 {
		want(t, s, chat(uint64(1+i), e), FromRender, hiIDs)
	}
	if r := s.Report("m").Ways[wayLocal]; !strings.Contains(r.Problem, "the last 3 calls failed: no merges") {
		t.Errorf("report is %+v", r)
	}
}
