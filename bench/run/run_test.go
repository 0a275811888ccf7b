package main

import (
	"bufio"
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/report"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 100}, 3}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestCell(t *testing.T) {
	if got := cell(0, 5) + "; " + cell(7, 0) + "; " + cell(150, 100); got != "none served; 7; 150 (1.50)" {
		t.Errorf("cells %q", got)
	}
}

func TestBrokenPromiseIsAnError(t *testing.T) {
	var screen bytes.Buffer
	w, err := report.New(&screen, t.TempDir(), "", "test")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Writer: w}
	if err := r.judge(true, "%d of %d", 1, 1); err != nil {
		t.Errorf("a kept promise gives %v", err)
	}
	if err := r.judge(false, "%d of %d", 0, 1); !errors.Is(err, errBroken) {
		t.Errorf("a broken promise gives %v", err)
	}
	if !strings.HasSuffix(screen.String(), "* kept: 1 of 1\n* BROKEN: 0 of 1\n") {
		t.Errorf("report %q", screen.String())
	}
}

func TestLeaversAreMatchedWithWhatBackendsSaw(t *testing.T) {
	left := time.Unix(1000, 0)
	leavers := []load.Leaver{
		{Stage: load.Upload, Left: left},
		{Stage: load.Prefill, Left: left},
		{Stage: load.Stream, Left: left},
		{Stage: load.Stream, Left: left},
		{Stage: load.Stream, Finished: true},
		{Stage: load.Prefill, Err: errors.New("refused")},
	}
	d := matchLeavers(leavers, []fake.Served{
		{Conversation: 1, Cancelled: true, Ended: left.Add(4 * time.Millisecond)},
		{Conversation: 2, Ended: left.Add(time.Millisecond)},
		{Conversation: 3, Ended: left.Add(time.Second)},
		{Conversation: 4, Ended: left},
	})
	if len(d.delays) != 1 || d.quantile(1) != 4*time.Millisecond {
		t.Errorf("delays %v", d.delays)
	}
	if d.missed != 1 || d.failed != 1 || d.byStage[load.Stream].answered != 2 || d.byStage[load.Upload].arrived != 0 {
		t.Errorf("departures %+v", d)
	}
}

func TestErrorIsCutToItsEnds(t *testing.T) {
	if got := ends(errors.New("start x\nusage\nbad flag\n")); got != "start x: bad flag" {
		t.Errorf("ends %q", got)
	}
}

func TestUnknownCommandNamesTheKnown(t *testing.T) {
	if err := run(t.Context(), []string{"unheard"}); err == nil || !strings.Contains(err.Error(), "affinity, burst, cpu") {
		t.Errorf("error %v", err)
	}
}

func TestLatenessEnds(t *testing.T) {
	l := watchLateness(t.Context())
	time.Sleep(20 * time.Millisecond)
	if worst := l.end(); worst < 0 || worst > time.Minute {
		t.Errorf("worst %v", worst)
	}
}

func TestCountsOfNodes(t *testing.T) {
	if ns, err := counts("1,3,8"); err != nil || !slices.Equal(ns, []int{1, 3, 8}) {
		t.Errorf("%v, %v", ns, err)
	}
	for _, bad := range []string{"", "0", "3,", "x", "99"} {
		if _, err := counts(bad); err == nil {
			t.Errorf("counts(%q) found no fault", bad)
		}
	}
}

func TestPerBackendCountsBetweenReadings(t *testing.T) {
	stats := func(n ...int64) (s fake.Stats) {
		for _, requests := range n {
			s.Backends = append(s.Backends, fake.BackendStats{Requests: requests})
		}
		return s
	}
	got, least, most := perBackend(stats(1, 2, 3), stats(6, 8, 7))
	if !slices.Equal(got, []int{5, 6, 4}) || least != 4 || most != 6 {
		t.Errorf("%v, %d to %d", got, least, most)
	}
}

func TestDecidedCountsByKindAndReason(t *testing.T) {
	reading := func(own, timeout float64) []gateway.Metrics {
		return []gateway.Metrics{{
			decidedTotal:  {{Labels: map[string]string{"kind": "own"}, Value: own}},
			degradedTotal: {{Labels: map[string]string{"reason": "timeout"}, Value: timeout}},
		}}
	}
	if got := decided(reading(1, 2), reading(5, 4)); got != "own: 4; degraded, timeout: 2" {
		t.Errorf("decided %q", got)
	}
	if got := decided(nil, nil); got != "none" {
		t.Errorf("nothing was decided, yet %q", got)
	}
}

func TestSpreadListsBySize(t *testing.T) {
	if got := spread([]float64{1.2, 1, 1.125}); got != "1.00 1.12 1.20" {
		t.Errorf("spread %q", got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestH2loadsLogAndItsErrorsAreRead(t *testing.T) {
	res, err := readLog(bufio.NewScanner(strings.NewReader("1764400000\t200\t150\n1764400001\t503\t90\n1764400002\t200\t250\n")))
	if err != nil || res.OK != 2 || res.Failed != 1 || res.Latency.Max() != 250*time.Microsecond {
		t.Errorf("%+v, %v", res, err)
	}
	if err := lost(res, "requests: 9 total, 9 started, 9 done, 4 succeeded, 5 failed, 2 errored, 3 timeout"); err != nil || res.Failed != 5 {
		t.Errorf("%d failed, %v", res.Failed, err)
	}
	if _, err := readLog(bufio.NewScanner(strings.NewReader("nothing\n"))); err == nil {
		t.Error("a line without a time is taken")
	}
	if err := lost(res, "h2load: out of memory"); err == nil {
		t.Error("no word of errors is taken for none")
	}
}
