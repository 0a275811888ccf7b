package listen

import (
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvca/state/virtualtime"
)

func TestAConnectionTooManyWaitsForASlot(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n, m, log := newNetwork(t), NewMetrics(prometheus.NewRegistry()), new(logText)
		l := Limit(n, "listen", 2, m, slog.New(slog.NewTextHandler(log, nil)))
		open := func() float64 { return testutil.ToFloat64(m.connections) }
		var held []net.Conn
		for range 2 {
			n.dial(t)
			held = append(held, accept(t, l))
		}
		n.dial(t)
		third := make(chan net.Conn)
		go func() {
			c, _ := l.Accept()
			third <- c
		}()
		synctest.Wait()
		if len(third) != 0 || open() != 2 || lines(log, "WARN") != 1 {
			t.Errorf("%v connections, log %s", open(), log)
		}
		time.Sleep(time.Hour)
		held[0].Close()
		held[0].Close() // once counts
		c := <-third
		if c == nil || open() != 2 {
			t.Errorf("%v connections", open())
		}
		held[1].Close()
		c.Close()
		if open() != 0 {
			t.Errorf("%v connections after all were closed", open())
		}
	})
}

func TestClosingTheListenerEndsAWaitForASlot(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		l := Limit(n, "listen", 1, nil, nil)
		n.dial(t)
		accept(t, l)
		ended := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			ended <- err
		}()
		synctest.Wait()
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("later: %v", err)
		}
	})
}

func TestWithoutABoundConnectionsAreCounted(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n, m := newNetwork(t), NewMetrics(nil)
		l := Limit(n, "admin", 0, m, nil)
		for range 20 {
			n.dial(t)
			accept(t, l)
		}
		if got := testutil.ToFloat64(m.connections); got != 20 {
			t.Errorf("%v connections", got)
		}
	})
}

// net/http ends its half of a TCP connection first, so that the answer is not lost.
func TestHalvesAreClosedThroughAllLayers(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	for _, trusted := range []string{"127.0.0.0/8", "192.0.2.0/24"} {
		l := ProxyProtocol(Limit(inner, "listen", 1, nil, nil), prefixes(trusted), nil)
		far, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if err := closeWrite(near); err != nil {
			t.Error(err)
		}
		if text, err := readN(far, 1); err == nil {
			t.Errorf("read %q after the end", text)
		}
		send(t, far, "GET ")
		if text, err := readN(near, 4); text != "GET " {
			t.Errorf("the other half: %q, %v", text, err)
		}
		near.Close()
		far.Close()
	}
}
