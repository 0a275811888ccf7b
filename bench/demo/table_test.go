package demo

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// counts are of requests that had half of 100 tokens cached, all but one of which
// were follow-ups.
func counts(requests int64, ttft time.Duration) (c Counts) {
	for i := range requests {
		c.add(&Result{FollowUp: i > 0, Kept: i%2 == 0, Prompt: 100, Cached: 50, TTFT: ttft})
	}
	return c
}

func TestTable(t *testing.T) {
	one, two := counts(41, 64*time.Millisecond), counts(20, 128*time.Millisecond)
	got := Table([]Row{
		{"kvca (cost)", &Snapshot{
			Elapsed: 20 * time.Second, RecentSpan: 10 * time.Second, Total: one, Recent: two,
			Backends: map[string]int64{"sim-10": 20, "sim-2": 21},
		}},
		{"round-robin", &Snapshot{Elapsed: 20 * time.Second, RecentSpan: 10 * time.Second, Total: two}},
	})
	want := `               req/s  follow-ups  tokens from  TTFT ms        requests  errors
                            kept        cache   mean    p90
last 10 s
  kvca (cost)    2.0      47.4 %       50.0 %    128    128        20       0
  round-robin    0.0           -            -      -      -         0       0
since the start, 20 s
  kvca (cost)    2.0      50.0 %       50.0 %     64     64        41       0
  round-robin    1.0      47.4 %       50.0 %    128    128        20       0
requests per backend, kvca (cost), in %
  sim-2 51  sim-10 49
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTableFitsATerminal(t *testing.T) {
	s := &Snapshot{Elapsed: time.Hour, RecentSpan: 10 * time.Second, Total: counts(100, time.Minute), Backends: make(map[string]int64)}
	for i := range 8 {
		s.Backends[fmt.Sprintf("sim-%d", i)] = 12
	}
	for line := range strings.Lines(Table([]Row{{"kvca (cost)", s}})) {
		if len(line) > 81 { // its end included
			t.Errorf("%d columns: %q", len(line)-1, line)
		}
	}
}

func TestScreenDrawsOverThePictureBefore(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out, true)
	s.Draw("one\ntwo\n")
	out.Reset()
	s.Draw("three\n")
	if got, want := out.String(), "\x1b[2A\r\x1b[J\x1b[?7lthree\n\x1b[?7h"; got != want {
		t.Errorf("second picture is %q, want %q", got, want)
	}
	out.Reset()
	fmt.Fprint(s, "a word")
	s.Draw("four\n")
	if got, want := out.String(), "\x1b[1A\r\x1b[Ja word\n\x1b[?7lfour\n\x1b[?7h"; got != want {
		t.Errorf("text and picture are %q, want %q", got, want)
	}
}

// gone is a terminal that was closed.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, syscall.EIO }

func TestScreenThatIsGoneIsToldOnce(t *testing.T) {
	for _, live := range []bool{true, false} {
		var told []error
		s := NewScreen(gone{}, live)
		s.Lost = func(err error) { told = append(told, err) }
		s.Draw("one\n")
		fmt.Fprintln(s, "a word")
		s.Draw("two\n")
		if len(told) != 1 || !errors.Is(told[0], syscall.EIO) {
			t.Errorf("live %v: told %v, want one EIO", live, told)
		}
	}
}

func TestScreenThatIsNoTerminalHasNoControls(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out, false)
	s.Draw("one\n")
	fmt.Fprintln(s, "a word")
	s.Draw("two\n")
	if got, want := out.String(), "one\n\na word\ntwo\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
