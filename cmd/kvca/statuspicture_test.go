package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// busy is a picture of a cluster with so many members and backends.
func busy(members, backends int) *picture {
	s := &clusterStatus{Node: "gw-1", Cluster: "kvca", Version: "1.2.3", Ready: true, Divergence: map[string]int64{}}
	s.BlockMap.MaxBytes = 96 << 20
	for i := range members {
		s.Members = append(s.Members, memberStatus{Name: fmt.Sprintf("gw-%d", i+1), State: "alive", Ready: true, Link: "up", Address: fmt.Sprintf("10.0.0.%d:7946", i+1)})
	}
	for i := range backends {
		s.Backends = append(s.Backends, backendStatus{ID: fmt.Sprintf("gpu-%d", i+1), Health: "healthy", Active: int64(i), Models: []string{"m"}, Owner: "gw-1"})
	}
	if backends > 0 {
		s.Backends[0].Health = "unhealthy"
	}
	p50, p90 := 61.0, 138.0
	return &picture{
		status: s, width: 120, height: 24, at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		traffic: &traffic{Over: 60, Requests: 2670, Errors: 6, PromptTokens: 1000, CachedTokens: 794, OutputTokens: 60000, P50: &p50, P90: &p90, InFlight: 12},
	}
}

func TestPicture(t *testing.T) {
	golden(t, "testdata/picture.txt", strings.Join(busy(3, 40).lines(), "\n")+"\n")
}

func TestPictureFitsEveryTerminal(t *testing.T) {
	for _, size := range [][2]int{{0, 0}, {1, 1}, {10, 3}, {40, 6}, {80, 10}, {80, 24}, {200, 60}} {
		for _, n := range [][2]int{{1, 0}, {1, 1}, {3, 8}, {64, 1000}} {
			p := busy(n[0], n[1])
			p.status.Members[0].Differs = strings.Repeat("ä", 300)
			p.width, p.height = size[0], size[1]
			lines := p.lines()
			if len(lines) > p.height {
				t.Errorf("%d lines at %v with %v", len(lines), size, n)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > p.width {
					t.Errorf("a line is too wide at %v: %q", size, line)
				}
			}
		}
	}
}

func TestPictureShowsFirstWhatIsWrong(t *testing.T) {
	p := busy(3, 40)
	p.height = 12
	text := strings.Join(p.lines(), "\n")
	if !strings.Contains(text, "gpu-1 ") || !strings.Contains(text, "more backends, less loaded") {
		t.Errorf("the unhealthy backend, or what was left out, is missing:\n%s", text)
	}
	p.fault = errors.New("ask the node: connection refused")
	if text := strings.Join(p.lines(), "\n"); !strings.Contains(text, "connection refused") {
		t.Errorf("the fault is not shown:\n%s", text)
	}
}

func TestDrawingAgainDoesNotClearTheScreen(t *testing.T) {
	var out bytes.Buffer
	err := onScreen(&out, func() error { return draw(&out, []string{"one", "two"}) })
	if want := enterScreen + home + "one" + restOfLine + "\r\n" + "two" + restOfLine + restBelow + leaveScreen; err != nil || out.String() != want {
		t.Errorf("%v, drew %q, want %q", err, out.String(), want)
	}
}

func TestTrafficIsShownWhereTheNodeTellsIt(t *testing.T) {
	admin := answering(t, 200, `{"now":1,"window_s":600,"last_minute":{"over_s":10,"requests":445,"errors":0,"refused":5,"prompt_tokens":1000,"cached_tokens":794,"output_tokens":100,"ttft_p50_ms":61,"ttft_p90_ms":138,"in_flight":3,"queued":1},"seconds":[]}`)
	got := fetchTraffic(t.Context(), adminAPI{base: admin})
	if got == nil {
		t.Fatal("there is none")
	}
	const want = "44.5 requests/s, 0.0 errors/s, 0.5 refused/s, 3 in flight, 1 waiting\n" +
		"10 tokens/s out, 79.4 % of prompt tokens cached, first byte p50 61 ms, p90 138 ms"
	if text := strings.Join(got.lines(), "\n"); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	if fetchTraffic(t.Context(), adminAPI{base: answering(t, 404, "404 page not found")}) != nil {
		t.Error("a node without /live has traffic")
	}
	if got := strings.Join((&traffic{}).lines(), "\n"); strings.Contains(got, "NaN") || strings.Contains(got, "first byte") {
		t.Error(got)
	}
}
