package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	mooncakeFile = "testdata/mooncake_500.jsonl.gz"
	agentFile    = "testdata/agents_5.jsonl.gz"

	goodMooncake = `{"timestamp": 3000, "input_length": 700, "output_length": 5, "hash_ids": [0, 7]}`
	goodAgent    = `{"s":"a","t":2.5,"in":200,"out":5,"think":1,"api":2,"stop":"","m":"x","h":[[1,2],[9,1]]}`
)

func open(t testing.TB, path string, o Options) *Trace {
	t.Helper()
	got, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, got)
	return got
}

func read(t testing.TB, o Options, lines ...string) *Trace {
	t.Helper()
	got, err := Read("test", strings.NewReader(strings.Join(lines, "\n")), o)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, got)
	return got
}

// sound holds what is true of every trace.
func sound(t testing.TB, got *Trace) {
	t.Helper()
	for i, s := range got.Sessions {
		if len(s.Requests) == 0 || s.Start < 0 || i > 0 && s.Start < got.Sessions[i-1].Start && !slices.Contains(got.Stages, i) {
			t.Fatalf("session %d: %d requests at %v", i, len(s.Requests), s.Start)
		}
		for j := range s.Requests {
			soundRequest(t, s.Requests, j)
		}
	}
}

func soundRequest(t testing.TB, session []Request, i int) {
	t.Helper()
	r := &session[i]
	if r.After < -1 || r.After >= i || r.Think < 0 || r.PromptTokens < 1 || r.OutputTokens < 1 {
		t.Fatalf("request %d: after %d, think %v, %d and %d tokens", i, r.After, r.Think, r.PromptTokens, r.OutputTokens)
	}
	if len(r.Names) != r.PromptTokens/UnitTokens {
		t.Fatalf("request %d: %d names for %d tokens", i, len(r.Names), r.PromptTokens)
	}
	if r.Answer != nil && len(r.Names)+len(r.Answer) != (r.PromptTokens+r.OutputTokens)/UnitTokens {
		t.Fatalf("request %d: %d names and %d of the answer for %d+%d tokens", i, len(r.Names), len(r.Answer), r.PromptTokens, r.OutputTokens)
	}
	for k, m := range r.Marks {
		if k > 0 && m.Tokens <= r.Marks[k-1].Tokens {
			t.Fatalf("request %d: mark %d at %d after %d", i, k, m.Tokens, r.Marks[k-1].Tokens)
		}
	}
	if n := len(r.Marks); n > 0 && r.Marks[n-1].Tokens != r.PromptTokens {
		t.Fatalf("request %d: the last mark is at %d of %d tokens", i, r.Marks[n-1].Tokens, r.PromptTokens)
	}
}

func TestFormatIsToldByTheFirstLinePackedOrNot(t *testing.T) {
	for _, line := range []string{goodMooncake, goodAgent} {
		path := filepath.Join(t.TempDir(), "some.jsonl")
		if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := open(t, path, Options{}); got.Requests() != 1 || got.Name != "some" {
			t.Errorf("%s: %d requests, named %q", line, got.Requests(), got.Name)
		}
	}
	if got := open(t, mooncakeFile, Options{}); got.Requests() != 500 || got.Name != "mooncake_500" || got.Lanes != 0 {
		t.Errorf("%s: %d requests, named %q, %d lanes", mooncakeFile, got.Requests(), got.Name, got.Lanes)
	}
	if got := open(t, agentFile, Options{}); len(got.Sessions) != 5 || got.Name != "agents_5" || got.Lanes != 64 {
		t.Errorf("%s: %d sessions, named %q, %d lanes", agentFile, len(got.Sessions), got.Name, got.Lanes)
	}
}

func TestBadInputSaysWhereAndWhatWasWanted(t *testing.T) {
	mooncake := func(from, to string) string { return strings.Replace(goodMooncake, from, to, 1) }
	agent := func(from, to string) string { return strings.Replace(goodAgent, from, to, 1) }
	for _, c := range []struct{ text, want string }{
		{"", "is empty"},
		{"\n", "line 1: want a JSON object"},
		{"3", "line 1: want a JSON object"},
		{`{"x":1}`, `line 1: want a JSON object with "hash_ids" (Mooncake) or "s" (agent sessions), came "{\"x\":1}"`},
		{goodMooncake + "\n" + goodAgent, "line 2: timestamp: want 0 to"},
		{goodAgent + "\n" + goodMooncake, "line 2: s: want a session's name"},
		{strings.Repeat("x", maxLine+1), "line 1: want at most 1048576 bytes"},

		{goodMooncake + "\n{", "line 2: " + mooncakeWant},
		{mooncake("700", "1025"), "line 1: hash_ids: want 3 for input_length 1025, came 2"},
		{mooncake("700", "0"), "input_length: want 1 to 16777216, came 0"},
		{mooncake("5", "-1"), "output_length: want 0 to 16777216, came -1"},
		{mooncake("3000", "-1"), "timestamp: want 0 to 10000000000, came -1"},
		{mooncake("3000", "1e300"), "timestamp: want 0 to"},
		{mooncake("[0", "[-1"), "line 1: " + mooncakeWant},
		{mooncake(`"timestamp"`, `"time"`), "timestamp: want 0 to 10000000000: it is missing"},
		{mooncake("3000", "null"), "timestamp: want 0 to 10000000000: it is missing"},
		{goodMooncake + "\n" + mooncake("3000", "0"), "line 2: timestamp: want 3000 ms or later, as the line before has, came 0"},

		{agent(`"a"`, `"/s1"`), `s: want a session's name, came "/s1"`},
		{agent(`"a"`, `"a////////////"`), "s: want at most 8 slashes, came 12"},
		{agent("[9,1]", "[9,2]"), "h: want 3 ids for in 200, came 4"},
		{agent("[9,1]", "[9]"), "h[1]: want [first id, count] with a count of 1 to 3, came [9]"},
		{agent("[9,1]", "[9,18446744073709551614]"), "h[1]: want [first id, count]"},
		{agent("[9,1]", "[18446744073709551615,1]"), "h[1]: want [first id, count]"},
		{agent("[9,1]", "[9,0]"), "h[1]: want [first id, count]"},
		{agent(`"think":1`, `"think":-1`), "think: want 0 to 10000000, came -1"},
		{agent(`"in":200,`, ""), "in: want 1 to 16777216: it is missing"},
		{`{"s":"a","meta":1,"bs":16}`, "line 1: bs: want 64, came 16"},
		{`{"s":"a","meta":1,"bs":64}`, errNothing.Error()},
		{goodAgent + "\n" + agent(`"a"`, `"b"`) + "\n" + goodAgent, "line 3: s: want the lines of a session together"},
	} {
		_, err := Read("some.jsonl", strings.NewReader(c.text), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "some.jsonl: ") {
			t.Errorf("%.100q\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestDamagedFileIsAnError(t *testing.T) {
	packed, err := os.ReadFile(mooncakeFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"cut": packed[:len(packed)/2], "header only": packed[:5]} {
		if _, err := Read("f", bytes.NewReader(b), Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Open("testdata/none", Options{}); err == nil || !strings.Contains(err.Error(), "testdata/none") {
		t.Errorf("a file that isn't there: %v", err)
	}
}

func TestOptionFaultsComeTogether(t *testing.T) {
	err := Options{Speed: -1, Limit: -1, Lanes: -1, MaxTokens: -1, MaxThink: -1}.Validate()
	if err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 5 {
		t.Errorf("faults %v", err)
	}
	if _, err := Read("f", strings.NewReader(goodAgent), Options{Speed: -1}); err == nil {
		t.Error("a negative speed was taken")
	}
}

func TestSpeedDividesTimes(t *testing.T) {
	for _, path := range []string{mooncakeFile, agentFile} {
		a, b := open(t, path, Options{Seed: 7}), open(t, path, Options{Seed: 7, Speed: 4})
		for i := range a.Sessions {
			if want := a.Sessions[i].Start / 4; b.Sessions[i].Start != want {
				t.Fatalf("%s: session %d starts at %v, want %v", path, i, b.Sessions[i].Start, want)
			}
			for j, r := range a.Sessions[i].Requests {
				if got := b.Sessions[i].Requests[j].Think; got != r.Think/4 {
					t.Fatalf("%s: session %d, request %d thinks %v, want %v", path, i, j, got, r.Think/4)
				}
			}
		}
	}
}

func TestLimitKeepsWholeSessionsFromTheFirst(t *testing.T) {
	for _, path := range []string{mooncakeFile, agentFile} {
		all := open(t, path, Options{}).Sessions
		for _, limit := range []int{5, 36, 37, 38, 130, 500, 501} {
			got, room := open(t, path, Options{Limit: limit}), limit
			n := 0
			for n < len(all) && len(all[n].Requests) <= room {
				room -= len(all[n].Requests)
				n++
			}
			if len(got.Sessions) != n || got.Requests() != limit-room {
				t.Errorf("%s, limit %d: %d sessions, %d requests, want %d, %d", path, limit, len(got.Sessions), got.Requests(), n, limit-room)
			}
		}
	}
	if _, err := Open(agentFile, Options{Limit: 4}); err == nil {
		t.Error("a limit below the first session gave a trace")
	}
}

func TestSameSeedGivesTheSameTrace(t *testing.T) {
	for _, path := range []string{mooncakeFile, agentFile} {
		if a, b := open(t, path, Options{Seed: 3}), open(t, path, Options{Seed: 3}); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two traces of one seed differ", path)
		}
	}
	if a, b := open(t, mooncakeFile, Options{Seed: 3}), open(t, mooncakeFile, Options{Seed: 4}); reflect.DeepEqual(a, b) {
		t.Error("two seeds give one trace")
	}
}

// Whatever a file holds, it is read into a sound trace or refused, and never with a time out of range.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		goodMooncake, goodAgent, goodMooncake + "\n" + goodMooncake, goodAgent + "\n" + strings.Replace(goodAgent, `"a"`, `"a/s1"`, 1),
		`{"s":"a","meta":1,"bs":64,"tool_tokens":12448,"system_tokens":2882}`,
	} {
		f.Add([]byte(s), int64(0), 0.0)
	}
	f.Fuzz(func(t *testing.T, b []byte, think int64, speed float64) {
		got, err := Read("fuzz", bytes.NewReader(b), Options{Speed: speed, MaxThink: time.Duration(think)})
		if err == nil {
			sound(t, got)
		}
	})
}
