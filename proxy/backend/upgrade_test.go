package backend

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// socketOver accepts a WebSocket and sends back what comes, up to the end of it.
func socketOver(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		return // a probe
	}
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second)) // a test that hangs
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Target: %s\r\n\r\n", r.RequestURI)
	io.Copy(conn, rw.Reader)
}

// A backend that offers HTTP/2 is asked by HTTP/1.1 all the same.
func TestWebSocketsAreOpenedOverEitherScheme(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"http": func(s *httptest.Server) { s.Start() },
		"https": func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(socketOver))
			start(s)
			defer s.Close()
			c := Config{URL: s.URL}
			if name == "https" {
				withCA(t)(&c, s)
			}
			resp, err := onLoopback(t, PoolConfig{}, c).Upgrade(t.Context(), "/ws?a=b", nil)
			if err != nil {
				t.Fatal(err)
			}
			conn, ok := resp.Body.(io.ReadWriteCloser)
			if !ok || resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("X-Target") != "/ws?a=b" {
				t.Fatalf("%d %v", resp.StatusCode, resp.Header)
			}
			defer conn.Close()
			io.WriteString(conn, "hello\n")
			if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
				t.Errorf("%q came back, %v", line, err)
			}
			half, ok := conn.(interface{ CloseWrite() error })
			if !ok || half.CloseWrite() != nil {
				t.Fatal("the connection can't be closed by halves")
			}
			if rest, err := io.ReadAll(conn); len(rest) > 0 || (err != nil && name == "http") {
				t.Errorf("after its end came %q, %v", rest, err)
			}
		})
	}
}

func TestARefusedWebSocketIsAnOrdinaryAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			http.Error(w, "no", http.StatusForbidden)
		}
	}))
	defer s.Close()
	header := http.Header{"Origin": {"x"}}
	resp, err := onLoopback(t, PoolConfig{}, Config{URL: s.URL}).Upgrade(t.Context(), "/ws", header)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusForbidden || string(text) != "no\n" {
		t.Errorf("%d %q", resp.StatusCode, text)
	}
	if len(header) != 1 {
		t.Errorf("the caller's header became %v", header)
	}
}

func TestHTTP2AloneHasNoWebSockets(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(socketOver))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	_, err := onLoopback(t, PoolConfig{}, Config{URL: "h2c://" + s.Listener.Addr().String()}).Upgrade(t.Context(), "/ws", nil)
	var failed *Error
	if !errors.As(err, &failed) || failed.Failure != LocalFailure {
		t.Errorf("%v", err)
	}
}
