package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvca/cluster/simnet"
	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
	"kvca/state/virtualtime"
)

// bubble is a gateway with one engine, on a network in memory and in virtual time.
type bubble struct {
	*testing.T
	net    *simnet.Network
	proxy  *Proxy
	client *simnet.Host
	engine *testEngine
}

// inBubble runs a test with a gateway at gateway:8080, and checks that nothing of its
// clients is left afterwards.
func inBubble(t *testing.T, test func(b *bubble)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		b := &bubble{T: t, net: simnet.New(1)}
		b.client = b.net.Host("client")
		log := slog.New(slog.DiscardHandler)
		rc := router.DefaultConfig()
		blocks, err := blockmap.New(blockmap.Config{MaxBytes: 1 << 20, TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		r, err := router.New(rc, router.LocalLoads(ledger.New(), "node"), blocks)
		if err != nil {
			t.Fatal(err)
		}
		dial := func(ctx context.Context, _, address string) (net.Conn, error) {
			return b.net.Host("gateway").Dial(ctx, address)
		}
		pool, err := backend.NewPool(backend.PoolConfig{SlowStart: -1, Logger: log, Dial: dial}, r)
		if err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		cfg.Logger = log
		if b.proxy, err = New(cfg, r, pool); err != nil {
			t.Fatal(err)
		}
		b.engine = &testEngine{id: "e0", model: "m"}
		b.engine.answer(chatAnswer)
		var serving sync.WaitGroup
		serve := func(host string, port int, s *http.Server, wrap func(net.Listener) net.Listener) {
			l, err := b.net.Host(host).Listen(port)
			if err != nil {
				t.Fatal(err)
			}
			serving.Go(func() { s.Serve(wrap(l)) })
		}
		engines := &http.Server{Handler: b.engine}
		serve("engine", 8000, engines, func(l net.Listener) net.Listener { return l })
		server := NewHTTPServer(b.proxy, log)
		serve("gateway", 8080, server, Patient)
		secure := NewHTTPServer(b.proxy, log)
		serve("gateway", 8443, secure, func(l net.Listener) net.Listener { return tls.NewListener(Patient(l), certified(t)) })
		if err := pool.Add(backend.Config{ID: "e0", URL: "http://engine:8000"}); err != nil {
			t.Fatal(err)
		}
		if err := pool.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(b)
		server.Close()
		secure.Close()
		time.Sleep(time.Minute)
		if n := b.proxy.InFlight(); n != 0 {
			t.Errorf("%d requests are in flight after their clients are gone", n)
		}
		if n := b.proxy.budget.used.Load(); n != 0 {
			t.Errorf("%d bytes of the body budget leaked", n)
		}
		pool.Close()
		engines.Close()
		serving.Wait()
		b.net.Close()
		time.Sleep(time.Minute)
	})
}

// certified is a TLS configuration with a certificate of its own.
func certified(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{NextProtos: []string{"h2", "http/1.1"}, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

func (b *bubble) dial(port int) net.Conn {
	b.Helper()
	c, err := b.client.Dial(b.Context(), fmt.Sprintf("gateway:%d", port))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}

// served is whether another client is served at once.
func (b *bubble) served() {
	b.Helper()
	c := b.dial(8080)
	defer c.Close()
	began := time.Now()
	io.WriteString(c, post1("Content-Length: 27\r\n", smallChat))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		b.Fatalf("another client is not served: %v", err)
	}
	resp.Body.Close()
	if took := time.Since(began); resp.StatusCode != 200 || took > time.Second {
		b.Errorf("another client: status %d after %v", resp.StatusCode, took)
	}
}

// drip sends a text byte by byte until all is sent or the connection is gone, which
// the function that it returns waits for.
func drip(c net.Conn, text string, every time.Duration) func() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range len(text) {
			if _, err := c.Write([]byte(text[i : i+1])); err != nil {
				return
			}
			time.Sleep(every)
		}
	}()
	return func() { <-done }
}

// ended waits for the end of a connection and says what came before it, and when.
func ended(c net.Conn) (text string, after time.Duration) {
	began := time.Now()
	all, _ := io.ReadAll(c)
	return string(all), time.Since(began)
}

func TestHeadersThatDripAreCutOff(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := b.dial(8080)
		defer drip(c, chatLine+"\r\nX: "+strings.Repeat("x", 1000), time.Second)()
		b.served()
		if text, after := ended(c); after < headerTimeout || after > headerTimeout+time.Second || strings.Contains(text, "200") {
			b.Errorf("%q after %v", text, after)
		}
		// And behind a whole request too.
		c = b.dial(8080)
		io.WriteString(c, strings.Replace(post1("Content-Length: 27\r\n", smallChat), "close", "keep-alive", 1))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			b.Fatal(resp, err)
		}
		io.Copy(io.Discard, resp.Body)
		defer drip(c, chatLine+"\r\n"+strings.Repeat("x", 1000), time.Second)()
		if _, after := ended(c); after > headerTimeout+5*time.Second {
			b.Errorf("the second request's headers: %v", after)
		}
	})
}

func TestBodiesThatDripAreCutOff(t *testing.T) {
	inBubble(t, func(b *bubble) {
		limits := b.proxy.config()
		for every, within := range map[time.Duration]time.Duration{
			limits.UploadIdle * 3: limits.UploadIdle,
			limits.UploadIdle / 2: limits.UploadLimit,
		} {
			c := b.dial(8080)
			io.WriteString(c, post1("Content-Length: 1000\r\n", ""))
			defer drip(c, smallChat+strings.Repeat(" ", 1000), every)()
			b.served()
			if text, after := ended(c); !strings.HasPrefix(text, "HTTP/1.1 408 ") || after < within/2 || after > within+10*time.Second {
				b.Errorf("a byte each %v: %.40q after %v, want a 408 after %v", every, text, after, within)
			}
		}
	})
}

// Clients may hold connections, for a while, and disturb nobody.
func TestManyIdleConnectionsAreClosed(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var idle []net.Conn
		for i := range 500 {
			c := b.dial(8080)
			if i%2 > 0 {
				io.WriteString(c, "PO")
			}
			idle = append(idle, c)
			synctest.Wait()
		}
		b.served()
		time.Sleep(keepAlive + time.Second)
		for _, c := range idle {
			if _, after := ended(c); after != 0 {
				b.Fatalf("a connection was open for %v more", after)
			}
		}
	})
}

// flood answers a stream that does not end before its reader has gone.
func flood(gone chan<- time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "stream") {
			chatAnswer(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, strings.Repeat(chunk, 100)); err != nil {
				gone <- time.Now()
				return
			}
		}
	}
}

func TestReadersThatAreSlowAreCutOff(t *testing.T) {
	streamed := streamed(smallChat)
	fields := h2Fields(":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/v1/chat/completions")
	begin2 := func(window string) string {
		return h2Preface + h2Frame(h2Settings, 0, 0, window) + h2Frame(h2Headers, h2EndHeaders, 1, fields) + h2Frame(h2Data, h2EndStream, 1, streamed)
	}
	for name, c := range map[string]struct {
		request string
		read    func(c net.Conn)
	}{
		"nothing is read": {post1(fmt.Sprintf("Content-Length: %d\r\n", len(streamed)), streamed), func(net.Conn) {}},
		"a byte each second is read": {post1(fmt.Sprintf("Content-Length: %d\r\n", len(streamed)), streamed), func(c net.Conn) {
			for range 600 {
				if _, err := c.Read(make([]byte, 1)); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}},
		"nothing is read of HTTP/2": {begin2(""), func(net.Conn) {}},
		"no window of HTTP/2":       {begin2("\x00\x04\x00\x00\x00\x00"), func(c net.Conn) { io.Copy(io.Discard, c) }},
		"nothing is read of HTTP/2, pings are sent": {begin2("\x00\x04\x7f\xff\xff\xff"), func(c net.Conn) {
			for range 600 {
				if _, err := io.WriteString(c, h2Frame(h2Ping, 0, 0, "12345678")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				gone := make(chan time.Time, 1)
				b.engine.answer(flood(gone))
				conn := b.dial(8080)
				began := time.Now()
				io.WriteString(conn, c.request)
				var reading sync.WaitGroup
				reading.Go(func() { c.read(conn) })
				b.served()
				if took := (<-gone).Sub(began); took > 2*b.proxy.config().WriteIdle {
					b.Errorf("the engine wrote for %v", took)
				}
				time.Sleep(2 * b.proxy.config().WriteIdle)
				if n := b.proxy.InFlight(); n != 0 {
					b.Errorf("%d requests are in flight", n)
				}
				conn.Close()
				reading.Wait()
			})
		})
	}
}

// Streams that are begun and reset run no more handlers than streams that stay.
func TestRapidResetIsBounded(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := b.dial(8080)
		go io.Copy(io.Discard, c)
		fields := h2Fields(":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/v1/chat/completions", "content-length", "27")
		io.WriteString(c, h2Preface+h2Frame(h2Settings, 0, 0, ""))
		for i := range uint32(2 * maxStreams) {
			if _, err := io.WriteString(c, h2Frame(h2Headers, h2EndHeaders, 2*i+1, fields)+h2Frame(h2Reset, 0, 2*i+1, "\x00\x00\x00\x08")); err != nil {
				break
			}
			if n := b.proxy.InFlight(); n > maxStreams+1 {
				b.Fatalf("%d requests of one client are in flight", n)
			}
		}
		b.served()
		synctest.Wait()
		if n := b.proxy.InFlight(); n != 0 {
			b.Errorf("%d requests of streams that were reset are in flight", n)
		}
	})
}

// Streams beyond the limit are refused, and those of others are not touched.
func TestStreamsOfOneConnectionHaveABound(t *testing.T) {
	inBubble(t, func(b *bubble) {
		c := b.dial(8080)
		go io.Copy(io.Discard, c)
		fields := h2Fields(":method", "POST", ":scheme", "http", ":authority", "x", ":path", "/v1/chat/completions", "content-length", "27")
		io.WriteString(c, h2Preface+h2Frame(h2Settings, 0, 0, ""))
		for i := range uint32(maxStreams + 200) {
			if _, err := io.WriteString(c, h2Frame(h2Headers, h2EndHeaders, 2*i+1, fields)); err != nil {
				break
			}
		}
		synctest.Wait()
		if n := b.proxy.InFlight(); n > maxStreams {
			b.Errorf("%d requests of one client are in flight", n)
		}
		b.served()
		time.Sleep(b.proxy.config().UploadIdle + time.Second)
		if n := b.proxy.InFlight(); n != 0 {
			b.Errorf("%d requests without bodies are in flight", n)
		}
	})
}

// Frames that cost the sender nothing end the connection before they cost us much.
func TestFloodsOfFramesEndTheConnection(t *testing.T) {
	start := h2Preface + h2Frame(h2Settings, 0, 0, "")
	for name, c := range map[string]struct {
		begin, repeat string
		reads         bool
		most          int // bytes
		pause         time.Duration
	}{
		"headers without end": {
			start + h2Frame(h2Headers, 0, 1, h2Fields(":method", "GET")),
			h2Frame(h2Continue, 0, 1, h2Fields("x-a", strings.Repeat("x", 1000))), true, 1 << 20, 0,
		},
		"headers of nothing without end": {
			start + h2Frame(h2Headers, 0, 1, h2Fields(":method", "GET")), h2Frame(h2Continue, 0, 1, ""), true, 64 << 10, 100 * time.Millisecond,
		},
		"pings, answers not read":    {start, h2Frame(h2Ping, 0, 0, "12345678"), false, 1 << 20, 0},
		"settings, answers not read": {start, h2Frame(h2Settings, 0, 0, ""), false, 1 << 20, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bubble) {
				conn := b.dial(8080)
				if c.reads {
					go io.Copy(io.Discard, conn)
				}
				io.WriteString(conn, c.begin)
				sent := 0
				for ; sent < c.most; sent += len(c.repeat) {
					conn.SetWriteDeadline(time.Now().Add(time.Minute)) // not taking it is as good
					if _, err := io.WriteString(conn, c.repeat); err != nil {
						break
					}
					time.Sleep(c.pause)
				}
				if sent >= c.most {
					b.Errorf("the gateway took %d bytes and goes on", sent)
				}
				b.served()
			})
		})
	}
}

// With TLS, connections may wait for their first request as they may without.
func TestATLSConnectionMayWaitForItsFirstRequest(t *testing.T) {
	inBubble(t, func(b *bubble) {
		secure := func(c net.Conn, protocol string) *tls.Conn {
			s := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
			if err := s.Handshake(); err != nil {
				b.Fatal(err)
			}
			return s
		}
		whole := strings.Replace(post1("Content-Length: 27\r\n", smallChat), "close", "keep-alive", 1)
		c := b.dial(8443)
		time.Sleep(keepAlive - time.Second)
		s := secure(c, "http/1.1")
		answers := bufio.NewReader(s)
		for range 3 {
			time.Sleep(keepAlive - time.Second)
			io.WriteString(s, whole)
			resp, err := http.ReadResponse(answers, nil)
			if err != nil || resp.StatusCode != 200 {
				b.Fatal(resp, err)
			}
			io.Copy(io.Discard, resp.Body)
		}
		// Headers that have begun may not wait, nor may a handshake.
		s = secure(b.dial(8443), "http/1.1")
		time.Sleep(time.Minute)
		io.WriteString(s, chatLine)
		if _, after := ended(s); after < headerTimeout || after > headerTimeout+time.Second {
			b.Errorf("headers that don't go on: %v", after)
		}
		c = b.dial(8443)
		io.WriteString(c, "\x16\x03\x01\x01\x00")
		if _, after := ended(c); after < headerTimeout || after > headerTimeout+time.Second {
			b.Errorf("a handshake that does not go on: %v", after)
		}
		c = b.dial(8443)
		if _, after := ended(c); after > keepAlive {
			b.Errorf("a connection without a handshake: %v", after)
		}
		// HTTP/2 has pauses of its own.
		s = secure(b.dial(8443), "h2")
		io.WriteString(s, h2Preface+h2Frame(h2Settings, 0, 0, ""))
		for i := range uint32(3) {
			io.WriteString(s, h2Frame(h2Headers, h2EndHeaders, 2*i+1, h2Fields(":method", "POST", ":scheme", "https", ":authority", "x", ":path", "/v1/chat/completions"))+
				h2Frame(h2Data, h2EndStream, 2*i+1, smallChat))
			if answered, err := h2Ended(s, 2*i+1); !answered {
				b.Fatalf("request %d: %v", i, err)
			}
			time.Sleep(headerTimeout + 5*time.Second)
		}
	})
}
