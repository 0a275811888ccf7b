package trace

import (
	"slices"
	"testing"
	"time"
)

func mooncakeRequest(t *testing.T, lines ...string) []Request {
	t.Helper()
	var requests []Request
	for _, s := range read(t, Options{}, lines...).Sessions {
		requests = append(requests, s.Requests...)
	}
	return requests
}

func TestMooncakeBlockIsFourUnitsAndAPartialOneCountsAsFarAsItIsComplete(t *testing.T) {
	got := mooncakeRequest(t,
		`{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 7]}`,
		`{"timestamp": 3000, "input_length": 900, "output_length": 5, "hash_ids": [0, 7]}`,
		`{"timestamp": 6000, "input_length": 512, "output_length": 0, "hash_ids": [7]}`,
		`{"timestamp": 9000, "input_length": 127, "output_length": 0, "hash_ids": [7]}`)
	if n := []int{len(got[0].Names), len(got[1].Names), len(got[2].Names), len(got[3].Names)}; !slices.Equal(n, []int{8, 7, 4, 0}) {
		t.Fatalf("names %v", n)
	}
	if !slices.Equal(got[1].Names, got[0].Names[:7]) || !slices.Equal(got[2].Names, got[0].Names[4:]) {
		t.Error("the same blocks have other names")
	}
	if different := len(slices.Compact(slices.Sorted(slices.Values(got[0].Names)))); different != 8 {
		t.Errorf("%d different names, want 8", different)
	}
}

func TestMooncakeFollowUpIsOneWhoseSecondBlockHasCome(t *testing.T) {
	got := mooncakeRequest(t,
		`{"timestamp": 0, "input_length": 1024, "output_length": 5, "hash_ids": [0, 7]}`,
		`{"timestamp": 3000, "input_length": 1024, "output_length": 5, "hash_ids": [0, 8]}`,
		`{"timestamp": 6000, "input_length": 1100, "output_length": 5, "hash_ids": [0, 7, 9]}`,
		`{"timestamp": 9000, "input_length": 512, "output_length": 5, "hash_ids": [0]}`)
	for i, want := range []bool{false, false, true, false} {
		if got[i].FollowUp != want {
			t.Errorf("request %d: follow-up %v", i, got[i].FollowUp)
		}
	}
}

func TestMooncakeGroupIsSpreadUntilTheNext(t *testing.T) {
	raw := `{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [0]}`
	lines := slices.Repeat([]string{raw}, 1000)
	lines = append(lines, `{"timestamp": 2000, "input_length": 5, "output_length": 5, "hash_ids": [0]}`)
	got := read(t, Options{Seed: 1}, lines...).Sessions
	if last := got[1000].Start; last < 2*time.Second || last >= 5*time.Second {
		t.Errorf("the last request is at %v", last)
	}
	for i, want := range map[int]time.Duration{250: 500 * time.Millisecond, 500: time.Second, 999: 2 * time.Second} {
		if off := (got[i].Start - want).Abs(); off > 100*time.Millisecond {
			t.Errorf("request %d of 1,000 in 2 s is at %v", i, got[i].Start)
		}
	}
}

func TestTooLongMooncakeRequestIsLeftOut(t *testing.T) {
	all := open(t, mooncakeFile, Options{})
	want := 0
	for _, s := range all.Sessions {
		if r := s.Requests[0]; r.PromptTokens+r.OutputTokens <= 10_000 {
			want++
		}
	}
	if got := open(t, mooncakeFile, Options{MaxTokens: 10_000}).Requests(); got != want || got == 500 {
		t.Errorf("%d requests are left of 500, want %d", got, want)
	}
}
