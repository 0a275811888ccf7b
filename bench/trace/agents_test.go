package trace

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// agent is a line of a trace; in is a number of blocks.
func agent(chain string, at float64, think, api string, in int, model, runs string) string {
	return fmt.Sprintf(`{"s":%q,"t":%v,"in":%d,"out":10,"think":%s,"api":%s,"m":%q,"h":%s}`, chain, at, in*agentBlock, think, api, model, runs)
}

type wait struct {
	after int
	think time.Duration
}

func waits(requests []Request) []wait {
	w := make([]wait, len(requests))
	for i, r := range requests {
		w[i] = wait{r.After, r.Think}
	}
	return w
}

func TestSubAgentWaitsForTheRequestBeforeItInTheFile(t *testing.T) {
	got := read(t, Options{},
		`{"s":"a","meta":1,"bs":64,"tool_tokens":1,"system_tokens":1}`,
		agent("a", 0, "0", "5", 2, "x", "[[1,2]]"),
		agent("a", 7, "2", "5", 2, "x", "[[1,2]]"),
		agent("a/s1", 0, "0", "1", 2, "y", "[[7,2]]"),
		agent("a/s1", 3, "2", "1", 2, "y", "[[7,2]]"),
		agent("a/s2", 0, "0", "1", 2, "y", "[[7,2]]"),
		agent("a/s1/s1", 0, "0.5", "1", 2, "y", "[[7,2]]"),
		agent("a", 30, "18", "5", 2, "x", "[[1,2]]"),
	).Sessions[0].Requests
	const s = time.Second
	want := []wait{{-1, 0}, {0, 2 * s}, {1, 0}, {2, 2 * s}, {1, 0}, {3, s / 2}, {1, 18 * s}}
	if w := waits(got); !slices.Equal(w, want) {
		t.Errorf("waits\n%v, want\n%v", w, want)
	}
	for i, want := range []bool{false, true, false, true, false, false, true} {
		if got[i].FollowUp != want {
			t.Errorf("request %d: follow-up %v", i, got[i].FollowUp)
		}
	}
}

func TestChainSkipsWhatIsLeftOutAndAddsItsThinks(t *testing.T) {
	const s = time.Second
	lines := []string{
		agent("a", 0, "1", "5", 4, "x", "[[1,4]]"),
		agent("a", 8, "2", "5", 2, "x", "[[1,2]]"),
		agent("a", 16, "3", "5", 4, "x", "[[1,4]]"),
		agent("a/s1", 0, "0", "5", 2, "x", "[[1,2]]"),
		agent("a", 25, "4", "5", 4, "x", "[[1,4]]"),
		agent("a", 35, "5", "5", 2, "x", "[[1,2]]"),
	}
	got := read(t, Options{MaxTokens: 2*agentBlock + 10}, lines...).Sessions[0].Requests
	want := []wait{{-1, 3 * s}, {0, 3 * s}, {0, 12 * s}}
	if w := waits(got); !slices.Equal(w, want) || !got[0].FollowUp {
		t.Errorf("waits %v, want %v", w, want)
	}
	got = read(t, Options{MaxTokens: 2*agentBlock + 10, MaxThink: 4 * s}, lines...).Sessions[0].Requests
	if got[1].Think != 3*s || got[2].Think != 4*s {
		t.Errorf("waits %v, want none above 4 s", waits(got))
	}
}

func TestGapStandsInForAMissingThink(t *testing.T) {
	got := read(t, Options{},
		agent("a", 0, "0", "5", 2, "x", "[[1,2]]"),
		agent("a", 8, "null", "null", 2, "x", "[[1,2]]"),
		agent("a", 20, "null", "3", 2, "x", "[[1,2]]"),
		agent("a", 21, "null", "3", 2, "x", "[[1,2]]"),
	).Sessions[0].Requests
	const s = time.Second
	if w, want := waits(got), []wait{{-1, 0}, {0, 3 * s}, {1, 12 * s}, {2, 0}}; !slices.Equal(w, want) {
		t.Errorf("waits %v, want %v", w, want)
	}
}

func TestAgentNamesAreTheModelsAndTheSessionsAndChained(t *testing.T) {
	sessions := read(t, Options{},
		agent("a", 0, "0", "1", 5, "x", "[[1,5]]"),
		agent("a", 9, "0", "1", 6, "x", "[[1,3],[9,3]]"),
		agent("a", 19, "0", "1", 5, "y", "[[1,5]]"),
		agent("a/s1", 0, "0", "1", 5, "x", "[[1,5]]"),
		agent("b", 0, "0", "1", 5, "x", "[[1,5]]"),
	).Sessions
	a := sessions[0].Requests
	if common(a[0].Names, a[1].Names) != 1 || a[1].Names[2] == a[0].Names[1] {
		t.Errorf("names %v and %v, of which the first unit is the same", a[0].Names, a[1].Names)
	}
	if common(a[0].Names, a[3].Names) != 2 {
		t.Error("a sub-agent has other names for the same content and model")
	}
	if common(a[0].Names, a[2].Names) != 0 || common(a[0].Names, sessions[1].Requests[0].Names) != 0 {
		t.Error("another model or session has the same names")
	}
}

// common is how many names two prompts begin with together.
func common(a, b []uint64) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
