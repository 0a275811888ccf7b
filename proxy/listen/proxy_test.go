package listen

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"kvca/state/virtualtime"
)

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// binary2 is a header of version 2.
func binary2(command, family byte, addresses string) string {
	b := append([]byte(binStart), command, family)
	b = binary.BigEndian.AppendUint16(b, uint16(len(addresses)))
	return string(b) + addresses
}

const (
	four = "\xc0\x00\x02\x07\x0a\x00\x00\x01\x12\x67\x01\xbb" // 192.0.2.7:4711 to 10.0.0.1:443
	six  = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" +
		"\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\x12\x67\x01\xbb"
)

func TestHeadersAreRead(t *testing.T) {
	for _, c := range []struct{ name, header, client string }{
		{"text, IPv4", "PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n", "192.0.2.7:4711"},
		{"text, IPv6", "PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n", "[2001:db8::7]:4711"},
		{"text, IPv4 in IPv6", "PROXY TCP6 ::ffff:192.0.2.7 ::1 4711 443\r\n", "192.0.2.7:4711"},
		{"text, unknown", "PROXY UNKNOWN\r\n", ""},
		{"text, unknown and more", "PROXY UNKNOWN " + strings.Repeat("f", 91) + "\r\n", ""},
		{"binary, IPv4", binary2(0x21, 0x11, four), "192.0.2.7:4711"},
		{"binary, IPv6", binary2(0x21, 0x21, six), "[2001:db8::7]:4711"},
		{"binary, with more behind", binary2(0x21, 0x11, four+"\x03\x00\x04abcd"+strings.Repeat("x", 60000)), "192.0.2.7:4711"},
		{"binary, the balancer itself", binary2(0x20, 0x11, four), ""},
		{"binary, the balancer itself, nothing", binary2(0x20, 0x00, ""), ""},
		{"binary, unspecified", binary2(0x21, 0x00, "whatever"), ""},
		{"binary, Unix socket", binary2(0x21, 0x31, strings.Repeat("x", 216)), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := parseProxyHeader([]byte(c.header + "GET / HTTP/1.1\r\n"))
			got := ""
			if h.client.IsValid() {
				got = h.client.String()
			}
			if err != nil || h.size != len(c.header) || got != c.client {
				t.Errorf("%+v, %v", h, err)
			}
			all := []byte(c.header)
			for n := range all {
				if _, err := parseProxyHeader(all[:n]); !errors.Is(err, errMore) {
					t.Fatalf("of %d bytes: %v, want more", n, err)
				}
			}
		})
	}
}

func TestFaultyHeadersAreErrors(t *testing.T) {
	for _, header := range []string{
		"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443 1\r\n",
		"PROXY TCP4  192.0.2.7 10.0.0.1 4711 443\r\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 4711 +443\r\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 04711 443\r\n",
		"PROXY TCP4 192.0.2.7 10.0.0.1 65536 443\r\n",
		"PROXY TCP4 192.0.2.07 10.0.0.1 4711 443\r\n",
		"PROXY TCP4 2001:db8::7 10.0.0.1 4711 443\r\n",
		"PROXY TCP6 192.0.2.7 10.0.0.1 4711 443\r\n",
		"PROXY TCP6 fe80::1%eth0 ::1 4711 443\r\n",
		"PROXY UDP4 192.0.2.7 10.0.0.1 4711 443\r\n",
		"PROXY \r\n",
		"PROXY UNKNOWN" + strings.Repeat("x", 107),
		binary2(0x22, 0x11, four),
		binary2(0x11, 0x11, four),
		binary2(0x21, 0x12, four),
		binary2(0x21, 0x11, four[:11]),
		binary2(0x21, 0x21, four),
		binary2(0x21, 0x31, four),
	} {
		if h, err := parseProxyHeader([]byte(header)); err == nil || errors.Is(err, errMore) {
			t.Errorf("%q: %+v, %v", header, h, err)
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\nGET"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(binary2(0x21, 0x11, four)))
	f.Add([]byte(binary2(0x21, 0x21, six) + "x"))
	f.Add([]byte("POST / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := parseProxyHeader(b)
		switch {
		case h.size < 0 || h.size > len(b) || err != nil && h != (proxyHeader{}):
			t.Fatalf("%+v, %v of %d bytes", h, err, len(b))
		case errors.Is(err, errMore) && len(b) >= binFixed+1<<16:
			t.Fatal("wants more than a header can have")
		case h.size > 0: // what follows a header doesn't matter
			if again, err := parseProxyHeader(b[:h.size]); again != h || err != nil {
				t.Fatalf("%+v alone is %+v, %v", h, again, err)
			}
		case err == nil && (begins(b, textStart) || begins(b, binStart)):
			t.Fatalf("%q passes as no header", b)
		}
	})
}

// meet is a connection that a listener with these trusted networks has accepted; the
// client is in 10.0.0.0/16.
func meet(t *testing.T, trusted string) (client, server net.Conn, log *logText) {
	t.Helper()
	n := newNetwork(t)
	log = new(logText)
	l := ProxyProtocol(n, prefixes(trusted), slog.New(slog.NewTextHandler(log, nil)))
	client = n.dial(t)
	return client, accept(t, l), log
}

// trickle sends a text in steps, a millisecond apart; what it returns waits for that.
func trickle(c net.Conn, text string, step int) func() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for at := 0; at < len(text); at += step {
			io.WriteString(c, text[at:min(at+step, len(text))])
			time.Sleep(time.Millisecond)
		}
	}()
	return func() { <-done }
}

func TestATrustedPeerTellsTheClient(t *testing.T) {
	for _, header := range []string{"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n", binary2(0x21, 0x11, four+strings.Repeat("x", 1000)), "PROXY UNKNOWN\r\n", ""} {
		for _, step := range []int{1, 7, 1 << 20} {
			virtualtime.Test(t, func(t *testing.T) {
				client, server, log := meet(t, "10.0.0.0/8")
				sent := header + "POST / HTTP/1.1\r\n"
				defer trickle(client, sent, step)()
				want := "192.0.2.7:4711"
				if len(header) < 16 {
					want = client.LocalAddr().String()
				}
				if got := server.RemoteAddr().String(); got != want {
					t.Errorf("client %s, want %s", got, want)
				}
				server.SetReadDeadline(time.Now().Add(time.Minute))
				if text, err := readN(server, 17); text != "POST / HTTP/1.1\r\n" {
					t.Errorf("after %q in steps of %d: %q, %v", header, step, text, err)
				}
				if log.String() != "" {
					t.Error(log)
				}
			})
		}
	}
}

func TestATrustedPeersFaultyHeaderEndsTheConnection(t *testing.T) {
	for name, sent := range map[string]string{"faulty": "PROXY TCP4 x\r\n", "cut": "PROXY TCP4 192.0", "cut, binary": binary2(0x21, 0x11, four)[:20]} {
		virtualtime.Test(t, func(t *testing.T) {
			client, server, log := meet(t, "10.0.0.0/8")
			send(t, client, sent)
			began := time.Now()
			if n, err := server.Read(make([]byte, 100)); n > 0 || err == nil {
				t.Errorf("%s: read %d bytes, %v", name, n, err)
			}
			if took := time.Since(began); took != 0 && took != headerTime {
				t.Errorf("%s: it took %v", name, took)
			}
			if _, err := client.Read(make([]byte, 1)); err == nil {
				t.Errorf("%s: the connection is open", name)
			}
			if server.SetReadDeadline(time.Now()) == nil || server.SetDeadline(time.Now()) == nil {
				t.Errorf("%s: deadlines can be set", name)
			}
			if lines(log, "WARN") != 1 {
				t.Error(log)
			}
		})
	}
}

// Connections are opened ahead of need, by clients in a trusted network too.
func TestATrustedPeerThatWaitsHasNoHeader(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		client, server, _ := meet(t, "10.0.0.0/8")
		began := time.Now()
		if got := server.RemoteAddr().String(); got != client.LocalAddr().String() || time.Since(began) != headerTime {
			t.Errorf("client %s after %v", got, time.Since(began))
		}
		go func() {
			time.Sleep(time.Minute)
			io.WriteString(client, "GET")
		}()
		if text, err := readN(server, 3); text != "GET" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestAHeaderOfAnyoneElseEndsTheConnection(t *testing.T) {
	for _, header := range []string{"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n", "PROXY UNKNOWN\r\n", binary2(0x21, 0x11, four)} {
		for _, step := range []int{1, 5, 100} {
			virtualtime.Test(t, func(t *testing.T) {
				client, server, log := meet(t, "192.0.2.0/24")
				defer trickle(client, header, step)()
				if got := server.RemoteAddr().String(); got != client.LocalAddr().String() {
					t.Errorf("client %s", got)
				}
				if text, err := io.ReadAll(server); !errors.Is(err, errNotTrusted) || len(text) >= len(binStart) {
					t.Errorf("%q in steps of %d: %q, %v", header, step, text, err)
				}
				if lines(log, "WARN") != 1 {
					t.Error(log)
				}
			})
		}
	}
}

func TestAnyoneElseWithoutHeaderPasses(t *testing.T) {
	for _, text := range []string{"POST / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PROXIES", "\r\n\r\nGET / HTTP/1.1\r\n", "\x16\x03\x01"} {
		for _, step := range []int{1, 5, 100} {
			virtualtime.Test(t, func(t *testing.T) {
				client, server, _ := meet(t, "192.0.2.0/24")
				defer trickle(client, text, step)()
				if got, err := readN(server, len(text)); got != text {
					t.Errorf("%q, %v", got, err)
				}
			})
		}
	}
}
