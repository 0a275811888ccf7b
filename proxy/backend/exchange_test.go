package backend

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kvca/router"
)

// script serves each connection of an address with the next of its acts.
func script(n *network, address string, acts ...func(net.Conn, *bufio.Reader)) (stop func()) {
	d := n.listen(address)
	go func() {
		for i := 0; ; i++ {
			c, err := d.Accept()
			if err != nil {
				return
			}
			act := acts[min(i, len(acts)-1)]
			go func() {
				defer func() { _ = c.Close() }()
				act(c, bufio.NewReader(c))
			}()
		}
	}()
	return func() { _ = d.Close() }
}

// serve answers n requests and leaves the connection open until the peer closes.
func serve(n int) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for range n {
			if _, _, err := request(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, okAnswer)
		}
		_, _ = io.Copy(io.Discard, r)
	}
}

// hangUp answers n requests and closes the connection when it has read one more.
func hangUp(n int, seen *atomic.Int32) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		for range n {
			_, _, _ = request(r)
			_, _ = io.WriteString(c, okAnswer)
		}
		_, _, _ = request(r)
		seen.Add(1)
	}
}

// direct makes a backend whose watcher never gets in the way of the script.
func direct(f *fleet, address string, c Config) *Backend {
	c.ID, c.URL = "x", "http://"+address+c.URL
	f.add(c)
	time.Sleep(10 * time.Millisecond)
	return f.backend("x")
}

// probed reserves the first connections for the watcher.
func probedFirst(acts ...func(net.Conn, *bufio.Reader)) []func(net.Conn, *bufio.Reader) {
	return append([]func(net.Conn, *bufio.Reader){serve(1 << 20)}, acts...)
}

func TestStaleConnectionIsTriedAgainOnAFreshOneAndIsNoFailure(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		var seen atomic.Int32
		stop := script(f.network, "x:80", probedFirst(hangUp(1, &seen), serve(9))...)
		defer stop()
		b := direct(f, "x:80", Config{Models: []string{"m"}})
		for i := range 2 {
			if status, err := post(t.Context(), b); status != 200 || err != nil {
				t.Fatalf("request %d: %d, %v", i, status, err)
			}
		}
		if seen.Load() != 1 || b.Status().counts.staleRetries != 1 {
			t.Fatalf("hung up on %d, retried %d, want 1 and 1", seen.Load(), b.Status().counts.staleRetries)
		}
		f.wantStanding("x", router.Available)
	})
}

func TestBackendThatAlwaysHangsUpIsAskedTwiceAtMost(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		var seen atomic.Int32
		stop := script(f.network, "x:80", probedFirst(hangUp(1, &seen), hangUp(0, &seen))...)
		defer stop()
		b := direct(f, "x:80", Config{Models: []string{"m"}})
		_, _ = post(t.Context(), b)
		_, err := post(t.Context(), b)
		if got := Classify(err, 0); got != BrokenConnection || seen.Load() != 2 {
			t.Fatalf("failure %v (%v) after %d tries, want broken after 2", got, err, seen.Load())
		}
		// The connection was fresh: no second try.
		_, err = post(t.Context(), b)
		if got := Classify(err, 0); got != BrokenConnection || seen.Load() != 3 {
			t.Fatalf("failure %v (%v) after %d tries, want broken after 3", got, err, seen.Load())
		}
	})
}

func TestLongPrefillThatBreaksIsNotSentAgain(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		var seen atomic.Int32
		slow := func(c net.Conn, r *bufio.Reader) {
			_, _, _ = request(r)
			_, _ = io.WriteString(c, okAnswer)
			_, _, _ = request(r)
			seen.Add(1)
			time.Sleep(5 * time.Minute)
		}
		stop := script(f.network, "x:80", probedFirst(slow, serve(9))...)
		defer stop()
		b := direct(f, "x:80", Config{Models: []string{"m"}})
		_, _ = post(t.Context(), b)
		_, err := post(t.Context(), b)
		if got := Classify(err, 0); got != BrokenConnection || seen.Load() != 1 {
			t.Fatalf("failure %v (%v) after %d tries, want broken after 1", got, err, seen.Load())
		}
	})
}

func TestRequestGoesOutAsGiven(t *testing.T) {
	cases := []struct{ base, target, want string }{
		{"", "/v1/chat/completions", "/v1/chat/completions"},
		{"/base", "/v1/x?a=b&c=%20d", "/base/v1/x?a=b&c=%20d"},
		{"/base/", "/v1/x?", "/base/v1/x?"},
		{"/b%2Fc", "/v1/x", "/b%2Fc/v1/x"},
		{"", "/files/a%2Fb%20c", "/files/a%2Fb%20c"},
		{"", "v1/x", "/v1/x"},
	}
	for _, c := range cases {
		inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
			var got *http.Request
			var body []byte
			read := func(c net.Conn, r *bufio.Reader) {
				got, body, _ = request(r)
				_, _ = io.WriteString(c, okAnswer)
			}
			stop := script(f.network, "x:80", probedFirst(read)...)
			defer stop()
			b := direct(f, "x:80", Config{URL: c.base, Models: []string{"m"}, APIKey: "secret"})
			header := http.Header{"Authorization": {"Bearer client"}, "X-Request-Id": {"1"}, "User-Agent": nil}
			sent := bytes.Repeat([]byte("0123456789"), 5000)
			resp, err := b.Do(t.Context(), http.MethodPost, c.target, header, sent)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got.RequestURI != c.want || got.Host != "x:80" || got.ContentLength != int64(len(sent)) {
				t.Errorf("got %s %s %d, want %s", got.Host, got.RequestURI, got.ContentLength, c.want)
			}
			if !bytes.Equal(body, sent) {
				t.Error("body changed")
			}
			if got.Header.Get("Authorization") != "Bearer secret" || got.Header.Get("X-Request-Id") != "1" || got.Header["Accept-Encoding"] != nil {
				t.Errorf("header %v", got.Header)
			}
			if header.Get("Authorization") != "Bearer client" {
				t.Error("the caller's header was changed")
			}
		})
	}
}

func TestBodyIsNotReadAfterTheAnswerIsClosed(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		early := func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r) // the headers alone
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
			time.Sleep(time.Second)
		}
		stop := script(f.network, "x:80", probedFirst(early)...)
		defer stop()
		b := direct(f, "x:80", Config{Models: []string{"m"}})
		body := bytes.Repeat([]byte("x"), 1<<20)
		resp, err := b.Do(t.Context(), http.MethodPost, "/", http.Header{}, body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		for i := range body { // the race detector looks on
			body[i] = 'y'
		}
	})
}

func TestClientThatLeavesIsNoFailure(t *testing.T) {
	inFleet(t, 0, PoolConfig{}, func(t *testing.T, f *fleet) {
		var closed atomic.Bool
		mute := func(_ net.Conn, r *bufio.Reader) {
			_, _, _ = request(r)
			_, _ = io.Copy(io.Discard, r)
			closed.Store(true)
		}
		stop := script(f.network, "x:80", probedFirst(mute)...)
		defer stop()
		b := direct(f, "x:80", Config{Models: []string{"m"}})
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("client left")) })
		_, err := post(ctx, b)
		if Classify(err, 0) != NoFailure || !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		synctest.Wait()
		if !closed.Load() {
			t.Fatal("the connection outlives its request")
		}
	})
}

func TestHeaderTimeoutIsOffByDefault(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Second} {
		inFleet(t, 0, PoolConfig{HeaderTimeout: limit}, func(t *testing.T, f *fleet) {
			queued := func(c net.Conn, r *bufio.Reader) {
				_, _, _ = request(r)
				time.Sleep(10 * time.Minute)
				_, _ = io.WriteString(c, okAnswer)
			}
			stop := script(f.network, "x:80", probedFirst(queued)...)
			defer stop()
			b := direct(f, "x:80", Config{Models: []string{"m"}})
			_, err := post(t.Context(), b)
			want := NoFailure
			if limit > 0 {
				want = HeaderTimeout
			}
			if got := Classify(err, 0); got != want {
				t.Fatalf("with %v: %v (%v), want %v", limit, got, err, want)
			}
		})
	}
}

func TestIdleConnectionsAreDroppedBeforeTheEngineDoes(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(t *testing.T, f *fleet) {
		b := f.backend("a")
		start := f.network.dialled("a:80")
		for _, wait := range []struct {
			pause time.Duration
			dials int
		}{{0, 1}, {3900 * time.Millisecond, 0}, {4100 * time.Millisecond, 1}} {
			time.Sleep(wait.pause)
			if status, err := post(t.Context(), b); status != 200 || err != nil {
				t.Fatal(status, err)
			}
			if got := f.network.dialled("a:80") - start; got != wait.dials {
				t.Fatalf("after %v: %d new connections, want %d", wait.pause, got, wait.dials)
			}
			start = f.network.dialled("a:80")
		}
	})
}

func TestConnectionsAreBoundedAndProbesDoNotWaitForThem(t *testing.T) {
	inFleet(t, 0, PoolConfig{MaxConns: 2}, func(t *testing.T, f *fleet) {
		var inside, most atomic.Int32
		e := newEngine(f.network, "a")
		busy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				e.ServeHTTP(w, r)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			time.Sleep(10 * time.Second)
			inside.Add(-1)
		})
		server := &http.Server{Handler: busy}
		listener := f.network.listen("a:80")
		go func() { _ = server.Serve(listener) }()
		defer func() { _ = server.Close() }()
		f.add(Config{ID: "a", URL: "http://a:80"})
		time.Sleep(time.Second)
		b := f.backend("a")
		results := make(chan error, 3)
		for range 3 {
			go func() { _, err := post(t.Context(), b); results <- err }()
		}
		time.Sleep(5 * time.Second)
		f.wantStanding("a", router.Available)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := post(ctx, b); Classify(err, 0) != NoFailure || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("waiting past the deadline: %v", err)
		}
		for range 3 {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
		if most.Load() != 2 {
			t.Fatalf("%d at a time, want 2", most.Load())
		}
	})
}
