package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Reply is an answer. Body is valid until the connection's next use.
type Reply struct {
	Status int
	Body   []byte
}

// conn is one client: a keep-alive connection that is made when needed. It
// belongs to one goroutine.
type conn struct {
	addr    string
	timeout time.Duration
	c       net.Conn
	br      *bufio.Reader
	body    bytes.Buffer
	// again counts requests that were sent a second time.
	again int64
}

// errUnanswered means that not a byte of an answer came.
var errUnanswered = errors.New("no answer")

func newConn(addr string, timeout time.Duration) *conn {
	return &conn{addr: addr, timeout: timeout, br: bufio.NewReaderSize(nil, 16<<10)}
}

// do sends one request and reads its answer. A connection that the server closed
// while it was idle is replaced once, which shows by the want of any answer.
func (c *conn) do(request []byte) (Reply, error) {
	reused := c.c != nil
	reply, err := c.try(request)
	if reused && errors.Is(err, errUnanswered) && !isTimeout(err) {
		c.again++
		reply, err = c.try(request)
	}
	return reply, err
}

func (c *conn) try(request []byte) (Reply, error) {
	reply, err := c.exchange(request)
	if err != nil {
		c.close()
	}
	return reply, err
}

func (c *conn) exchange(request []byte) (Reply, error) {
	if err := c.open(); err != nil {
		return Reply{}, err
	}
	if _, err := c.c.Write(request); err != nil {
		return Reply{}, fmt.Errorf("send request: %w: %w", errUnanswered, err)
	}
	if _, err := c.br.Peek(1); err != nil {
		return Reply{}, fmt.Errorf("read response: %w: %w", errUnanswered, err)
	}
	resp, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("read response: %w", err)
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(resp.Body); err != nil {
		return Reply{}, fmt.Errorf("read response body: %w", err)
	}
	if resp.Close {
		c.close()
	}
	return Reply{Status: resp.StatusCode, Body: c.body.Bytes()}, nil
}

// open makes the connection if there is none and starts the request's deadline.
func (c *conn) open() error {
	if c.c == nil {
		d, err := net.DialTimeout("tcp", c.addr, c.timeout)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		c.c = d
		c.br.Reset(d)
	}
	return c.c.SetDeadline(time.Now().Add(c.timeout))
}

func (c *conn) close() {
	if c.c != nil {
		_ = c.c.Close()
		c.c = nil
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// Request is a chat completion request as it goes over the wire.
func Request(body []byte) []byte {
	b := make([]byte, 0, len(body)+160)
	b = append(b, "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	return append(b, body...)
}
