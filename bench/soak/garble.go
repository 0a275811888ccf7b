package soak

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// garbled are requests that no gateway can do anything with. Each is to be refused
// with a status from 400 to 499, or by the connection's end.
var garbled = []string{
	"\x00\x01\x02\x03\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"GET\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\n{\"a\":",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 9\r\n\r\nnot json!",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 12\r\n\r\n{\"model\":17}",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 18\r\n\r\n{\"model\":\"nobody\"}",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}}",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nabcd",
	"DELETE /v1/chat/completions HTTP/1.1\r\nHost: g\r\n\r\n",
	"GET /../../etc/passwd HTTP/1.1\r\nHost: g\r\n\r\n",
	"GET /v1/" + strings.Repeat("a", 6000) + " HTTP/1.1\r\nHost: g\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nX: " + strings.Repeat("y", 2<<20) + "\r\n\r\n",
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 600\r\n\r\n" + strings.Repeat("[", 600),
	// and one that never ends its body: the gateway must give it up by itself
	"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 5000\r\n\r\n{\"model\":",
}

// garble sends one of them and reads what comes.
func (w *worker) garble(addr string) error {
	c, err := net.DialTimeout("tcp", addr, requestTime)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(requestTime))
	text := garbled[w.rand.IntN(len(garbled))]
	if _, err := io.WriteString(c, text); err != nil {
		return nil // refused before it had all of it
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	var slow net.Error
	switch {
	case errors.As(err, &slow) && slow.Timeout():
		return fmt.Errorf("no answer and no end for %.60q within %v", text, requestTime)
	case err != nil:
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 4 {
		return fmt.Errorf("status %d for %.60q, want 400 to 499", resp.StatusCode, text)
	}
	return nil
}
