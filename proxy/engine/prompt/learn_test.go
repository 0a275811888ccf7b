package prompt

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kvca/state/cbr"
)

func TestLearnedTokensNeedNobody(t *testing.T) {
	s := newService(t, Config{})
	told := []uint32{1, 2, 3}
	r := chat(1)
	r.Endpoint = cbr.Messages
	s.Learn(r, told)
	told[0] = 9
	want(t, s, r, FromCache, []uint32{1, 2, 3})
	next := chat(2)
	next.Earlier = []uint64{1}
	want(t, s, next, FromEarlier, []uint32{1, 2, 3})
	s.Learn(chat(0), told)
	s.Learn(chat(3), nil)
	if st := s.Stats(); st.CacheEntries != 1 {
		t.Errorf("%d entries, want 1", st.CacheEntries)
	}
}

func TestWayThatIsOftenWrongIsUsedNoMore(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{})
	key := uint64(0)
	ask := func(source string, right bool) {
		t.Helper()
		key++
		want(t, s, chat(key, e), source, hiIDs)
		told := append([]uint32{}, hiIDs...)
		if !right {
			told[3]++
		}
		s.Learn(chat(key, e), told)
	}
	want(t, s, chat(1000, e), FromRender, hiIDs)
	for _, right := range []bool{false, false} {
		ask(FromRender, right)
	}
	for range checkWindow {
		ask(FromRender, true)
	}
	for range maxWrong {
		ask(FromRender, false)
	}
	// Next in line is the tokenizer, which finds everything anew.
	want(t, s, chat(1000, e), FromTokenize, hiIDs)
	for range maxWrong {
		ask(FromTokenize, false)
	}
	for range 2 { // the other dialects turn out to be absent
		f := wantFailure(t, s, chat(2000, e), Mismatch)
		if !strings.Contains(f.Error(), "token 3 is") {
			t.Errorf("failure is %v", f)
		}
	}
	if r := s.Report("m"); r.Way != "" || r.Ways[0].State != "mismatch" || !strings.HasPrefix(r.Ways[0].Problem, "3 of the last 20 prompts") {
		t.Errorf("report is %+v", r)
	}
	if st := s.Stats(); st.Wrong != 2+2*maxWrong || st.Right != checkWindow {
		t.Errorf("%d wrong and %d right", st.Wrong, st.Right)
	}
	if r := s.SelfTest(t.Context(), "m", []Engine{e}); r.Way != "render" {
		t.Errorf("after a self-test the way is %q", r.Way)
	}
	want(t, s, chat(3000, e), FromRender, hiIDs)
}

func TestEngineHasTheLastWord(t *testing.T) {
	e := &double{id: "a", handler: vllm()}
	s := newService(t, Config{})
	want(t, s, chat(1, e), FromRender, hiIDs)
	s.Learn(chat(1), []uint32{7})
	want(t, s, chat(1, e), FromCache, []uint32{7})
	s.Learn(chat(1), []uint32{8}) // what was learned is no way's fault
	if st := s.Stats(); st.Wrong != 1 {
		t.Errorf("%d wrong, want 1", st.Wrong)
	}
}

func TestMediaAreNotLearnedWithoutTheirPlaces(t *testing.T) {
	s := newService(t, Config{})
	r := chat(1)
	r.Body = []byte(`{"messages":[{"content":[{"type":"image_url"}]}]}`)
	s.Learn(r, []uint32{1})
	wantFailure(t, s, r, NoTokenizer)
}

func TestThreeWrongOfTwentyAreTooMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c checks
		var all []bool
		for _, right := range rapid.SliceOfN(rapid.Bool(), 1, 100).Draw(t, "right") {
			all = append(all, right)
			wrong := 0
			for _, r := range all[max(0, len(all)-20):] {
				if !r {
					wrong++
				}
			}
			if got := c.add(right); got != (wrong >= 3) {
				t.Fatalf("%d wrong of the last 20: got %v", wrong, got)
			}
		}
	})
}
