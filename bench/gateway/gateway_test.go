package gateway

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryNameHasARecipe(t *testing.T) {
	for _, n := range Names() {
		if recipes[n] == nil {
			t.Errorf("%s can't be started", n)
		}
	}
	if _, err := Choose("kvca,unheard"); err == nil {
		t.Error("an unknown gateway was accepted")
	}
}

func TestMissingPeerIsNotInstalled(t *testing.T) {
	e := &Env{Venvs: t.TempDir(), Kvca: "/nowhere/kvca"}
	for _, n := range []string{"kvca", "smg", "sglang-router", "vllm-router"} {
		if _, err := recipes[n](e, 1, 2); !errors.Is(err, ErrNotInstalled) {
			t.Errorf("%s: %v, want not installed", n, err)
		}
	}
}

func TestKvcaCommandLine(t *testing.T) {
	e := &Env{Kvca: os.Args[0], Backends: []string{"http://a", "http://b"}, KvcaFlags: []string{"--ttl", "1m"}}
	args, err := kvcaPolicy("two-phase")(e, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--listen 127.0.0.1:1", "--admin 127.0.0.1:2", "--backend fake-1=http://b", "--ttl 1m", "--policy two-phase",
	} {
		if !strings.Contains(strings.Join(args, " "), want) {
			t.Errorf("%v lacks %s", args, want)
		}
	}
	if slices.Contains(args, "plain") {
		t.Errorf("%v", args)
	}
}

func TestLoadNamesWhatIsLeft(t *testing.T) {
	s := &Status{}
	if s.Load() != "" {
		t.Errorf("empty status has load %q", s.Load())
	}
	s.Reservations.Held = 2
	s.BlockMap.Tentative = 1
	if got := s.Load(); got != "2 reservations held; 1 tentative locations" {
		t.Errorf("load %q", got)
	}
}

func TestGoroutineCount(t *testing.T) {
	if n, err := goroutines([]byte("goroutine profile: total 23\n1 @ 0x1\n")); n != 23 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := goroutines([]byte("<html>")); err == nil {
		t.Error("a page was read as a profile")
	}
}

func TestMetricsAreSummedByLabel(t *testing.T) {
	m, err := parseMetrics([]byte(`# TYPE link_bytes_total counter
link_bytes_total{direction="out",peer="b"} 5
link_bytes_total{direction="out",peer="c"} 7
link_bytes_total{direction="in",peer="b"} 100
# TYPE call_seconds histogram
call_seconds_bucket{le="0.001"} 90
call_seconds_bucket{le="0.002"} 99
call_seconds_bucket{le="+Inf"} 100
call_seconds_sum 1
call_seconds_count 100
`))
	if err != nil {
		t.Fatal(err)
	}
	if out, b, all := m.Sum("link_bytes_total", "direction", "out"), m.Sum("link_bytes_total", "direction", "out", "peer", "b"), m.Sum("link_bytes_total"); out != 12 || b != 5 || all != 112 {
		t.Errorf("sums %v, %v, %v", out, b, all)
	}
	calls := m.Histogram("call_seconds")
	if lower, upper := calls.Quantile(0.5); lower != 0 || upper != time.Millisecond {
		t.Errorf("p50 between %v and %v", lower, upper)
	}
	if lower, upper := calls.Quantile(0.95); lower != time.Millisecond || upper != 2*time.Millisecond {
		t.Errorf("p95 between %v and %v", lower, upper)
	}
	if twice := calls.Plus(calls); twice.Count() != 200 || twice.Minus(calls).Count() != 100 || calls.Count() != 100 {
		t.Errorf("%d calls, twice %d", calls.Count(), twice.Count())
	}
	if n := m.Histogram("unheard").Count(); n != 0 {
		t.Errorf("a histogram that is not there counts %d", n)
	}
}
