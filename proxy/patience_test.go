package proxy

import (
	"io"
	"net"
	"testing"
	"time"

	"kvca/state/virtualtime"
)

// pipeListener hands out one end of a pipe.
type pipeListener struct{ conns chan net.Conn }

func (l pipeListener) Accept() (net.Conn, error) { return <-l.conns, nil }
func (l pipeListener) Close() error              { return nil }
func (l pipeListener) Addr() net.Addr            { return &net.TCPAddr{} }

// A connection that was opened ahead of need may wait; headers that have begun may not.
func TestAConnectionMayWaitForItsFirstRequest(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		far, near := net.Pipe()
		defer far.Close()
		l := pipeListener{make(chan net.Conn, 1)}
		l.conns <- near
		c, err := Patient(l).Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// As net/http does when it begins to wait for headers.
		if err := c.SetReadDeadline(time.Now().Add(headerTimeout)); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(keepAlive - time.Second)
			io.WriteString(far, "POST")
		}()
		b := make([]byte, 64)
		if n, err := c.Read(b); n != 4 || err != nil {
			t.Fatalf("a first request after %v: %d bytes, %v", keepAlive-time.Second, n, err)
		}
		began := time.Now()
		if _, err := c.Read(b); err == nil || time.Since(began) != headerTimeout {
			t.Errorf("headers that don't go on: %v after %v, want a timeout after %v", err, time.Since(began), headerTimeout)
		}
	})
}
