package proxy

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/proxy/backend"
)

// wire records what an engine is sent, byte by byte.
type wire struct {
	net.Listener
	mu    sync.Mutex
	conns []*bytes.Buffer
}

func (w *wire) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all := new(bytes.Buffer)
	w.conns = append(w.conns, all)
	return &recorded{c, w, all}, nil
}

type recorded struct {
	net.Conn
	wire *wire
	all  *bytes.Buffer
}

func (c *recorded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.all.Write(b[:n])
	return n, err
}

// newWireRig is a gateway in front of one engine whose connections are recorded.
func newWireRig(t *testing.T, options ...rigOption) (*rig, *wire) {
	t.Helper()
	g := newRig(t, 0, options...)
	e := &testEngine{id: "e0", model: "m"}
	e.answer(chatAnswer)
	e.Server = httptest.NewUnstartedServer(e)
	w := &wire{Listener: e.Listener}
	e.Listener = w
	e.Start()
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	g.engines = append(g.engines, e)
	if err := g.pool.Add(backend.Config{ID: e.id, URL: e.URL}); err != nil {
		t.Fatal(err)
	}
	g.waitReady()
	return g, w
}

// wireRequest is a request as an engine finds it in its connection, read as strictly
// as can be.
type wireRequest struct {
	line   string
	header []string
	body   string
}

func (r *wireRequest) has(name string) bool {
	return slices.ContainsFunc(r.header, func(line string) bool {
		return len(line) > len(name) && strings.EqualFold(line[:len(name)+1], name+":")
	})
}

// values are those of a header.
func (r *wireRequest) values(name string) (values []string) {
	for _, line := range r.header {
		if n, v, _ := strings.Cut(line, ": "); strings.EqualFold(n, name) {
			values = append(values, v)
		}
	}
	return values
}

// take returns what clients' requests the engine was sent since the last call.
func (w *wire) take(t *testing.T) (requests []wireRequest) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		for c.Len() > 0 {
			r := readWire(t, c)
			switch r.line {
			case "GET /health HTTP/1.1", "GET /v1/models HTTP/1.1", "GET /metrics HTTP/1.1":
			default:
				requests = append(requests, r)
			}
		}
	}
	return requests
}

// readWire takes one request off the stream. What could be read in two ways is an
// error: it was sent by the gateway.
func readWire(t *testing.T, stream *bytes.Buffer) wireRequest {
	t.Helper()
	head, rest, ok := bytes.Cut(stream.Bytes(), []byte("\r\n\r\n"))
	if !ok {
		t.Errorf("the engine was sent half a request: %q", stream.Bytes())
		stream.Reset()
		return wireRequest{}
	}
	lines := strings.Split(string(head), "\r\n")
	r := wireRequest{line: lines[0], header: lines[1:]}
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") || line != strings.TrimSpace(line) && !strings.HasSuffix(line, ": ") {
			t.Errorf("the engine was sent the line %q", line)
		}
	}
	for _, name := range append(hopByHop, "HTTP2-Settings") {
		if r.has(name) {
			t.Errorf("the engine was sent the header %s", name)
		}
	}
	size := 0
	switch lengths := r.values("Content-Length"); len(lengths) {
	case 0:
	case 1:
		var err error
		if size, err = strconv.Atoi(lengths[0]); err != nil || size > len(rest) {
			t.Errorf("the engine was sent the length %q and %d bytes", lengths[0], len(rest))
			size = len(rest)
		}
	default:
		t.Errorf("the engine was sent the lengths %q", lengths)
	}
	r.body = string(rest[:size])
	stream.Next(len(head) + 4 + size)
	return r
}

// raw sends bytes to the gateway and returns the statuses of all that it answers, until
// it closes or has been silent for a while.
func (g *rig) raw(payload string) (statuses []int) {
	g.Helper()
	conn, err := net.Dial("tcp", g.client.Listener.Addr().String())
	if err != nil {
		g.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, payload); err != nil {
		g.Logf("the gateway took not all: %v", err)
	}
	answers := bufio.NewReader(conn)
	for {
		wait := 5 * time.Second // there is one answer at least
		if len(statuses) > 0 {
			wait = 150 * time.Millisecond
		}
		conn.SetReadDeadline(time.Now().Add(wait))
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			return statuses
		}
		io.Copy(io.Discard, resp.Body)
		if resp.StatusCode != http.StatusContinue {
			statuses = append(statuses, resp.StatusCode)
		}
	}
}

// Frames of HTTP/2, made by hand: a client library would refuse what is tried here.
const (
	h2Preface  = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	h2Data     = 0
	h2Headers  = 1
	h2Reset    = 3
	h2Settings = 4
	h2Ping     = 6
	h2GoAway   = 7
	h2Window   = 8
	h2Continue = 9

	h2EndStream  = 1
	h2EndHeaders = 4
)

func h2Frame(kind, flags byte, stream uint32, payload string) string {
	b := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return string(binary.BigEndian.AppendUint32(b, stream)) + payload
}

// h2Fields encodes header fields without compression.
func h2Fields(pairs ...string) string {
	var b []byte
	for i := 0; i < len(pairs); i += 2 {
		b = append(b, 0) // a literal that is not indexed
		for _, text := range pairs[i : i+2] {
			if n := len(text); n < 127 {
				b = append(b, byte(n))
			} else {
				b = append(b, 127)
				for n -= 127; n >= 128; n >>= 7 {
					b = append(b, byte(n)|0x80)
				}
				b = append(b, byte(n))
			}
			b = append(b, text...)
		}
	}
	return string(b)
}

// h2Read returns the next frame.
func h2Read(r io.Reader) (kind, flags byte, stream uint32, payload []byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return
	}
	payload = make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
	_, err = io.ReadFull(r, payload)
	return head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload, err
}

// h2Ended reads until the stream or the connection has ended. answered is whether
// there were headers.
func h2Ended(r io.Reader, stream uint32) (answered bool, err error) {
	for {
		kind, flags, s, _, err := h2Read(r)
		switch {
		case err != nil || kind == h2GoAway:
			return answered, err
		case s != stream:
		case kind == h2Reset:
			return answered, nil
		case kind == h2Headers || kind == h2Data:
			answered = true
			if flags&h2EndStream != 0 {
				return answered, nil
			}
		}
	}
}
