package engine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// served runs a server on a socket until the test ends.
func served(t *testing.T, cfg ServerConfig) (*Server, string, *http.Client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ln, s) }()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s, "http://" + ln.Addr().String(), client
}

func post(t *testing.T, client *http.Client, url, body string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return client.Do(r)
}

func order1(t *testing.T, client *http.Client, base, body string) {
	t.Helper()
	resp, err := post(t, client, base+"/sim/fail", body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("ordering %s: %v, %v", body, resp, err)
	}
	_ = resp.Body.Close()
}

func TestADisconnectIsNoticedWithinMilliseconds(t *testing.T) {
	s, base, client := served(t, ServerConfig{})
	ctx, leave := context.WithCancel(t.Context())
	body := `{"messages":[{"role":"user","content":"` + words(60_000, 1) + `"}],"stream":true}`
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", strings.NewReader(body))
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for deadline := time.Now().Add(5 * time.Second); s.Live() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request never reached the engine")
		}
	}
	leave()
	begin := time.Now()
	for s.Cancelled() == 0 && time.Since(begin) < 5*time.Second {
		time.Sleep(time.Millisecond)
	}
	if took := time.Since(begin); took > 500*time.Millisecond {
		t.Errorf("cancelled after %v", took)
	}
}

func TestOrderedStatuses(t *testing.T) {
	_, base, client := served(t, ServerConfig{Speedup: 50})
	order1(t, client, base, `{"mode":"503","count":2}`)
	for i, want := range []int{503, 503, 200} {
		resp, err := post(t, client, base+"/v1/completions", `{"prompt":"x"}`)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("request %d: %v, %v, want %d", i, resp, err, want)
		}
		_ = resp.Body.Close()
	}
}

func TestOrderedBreaks(t *testing.T) {
	_, base, client := served(t, ServerConfig{Speedup: 50})
	stream := `{"prompt":"x","max_tokens":500,"stream":true}`

	order1(t, client, base, `{"mode":"refuse-before-headers"}`)
	if _, err := post(t, client, base+"/v1/completions", stream); err == nil {
		t.Error("refuse-before-headers: an answer came")
	}
	for _, body := range []string{stream, `{"prompt":"x"}`} {
		order1(t, client, base, `{"mode":"break-stream"}`)
		resp, err := post(t, client, base+"/v1/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if len(text) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("break-stream: %q, %v, want a part and an unexpected end", text, err)
		}
		_ = resp.Body.Close()
	}
	order1(t, client, base, `{"mode":"error-event"}`)
	resp, err := post(t, client, base+"/v1/completions", stream)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if !strings.Contains(string(text), `data: {"error":{`) || strings.Contains(string(text), "[DONE]") || err != nil {
		t.Errorf("error-event: %q, %v", text, err)
	}
	_ = resp.Body.Close()
}

func TestOrderedDelays(t *testing.T) {
	s, base, client := served(t, ServerConfig{Speedup: 50})
	order1(t, client, base, `{"mode":"slow","delay_ms":80}`)
	begin := time.Now()
	resp, err := post(t, client, base+"/v1/completions", `{"prompt":"x"}`)
	if err != nil || time.Since(begin) < 80*time.Millisecond {
		t.Fatalf("slow: %v after %v", err, time.Since(begin))
	}
	_ = resp.Body.Close()
	order1(t, client, base, `{"mode":"hang"}`)
	ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer leave()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/completions", strings.NewReader(`{"prompt":"x"}`))
	if _, err := client.Do(r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v, want the client's own deadline", err)
	}
	if s.Live() != 0 {
		t.Errorf("%d live", s.Live())
	}
}

func TestAKilledServerCutsItsStreams(t *testing.T) {
	s, base, client := served(t, ServerConfig{})
	resp, err := post(t, client, base+"/v1/completions", `{"prompt":"x","max_tokens":5000,"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := io.Copy(io.Discard, lines); err == nil {
		t.Error("the stream ended in good order")
	}
}
