package zmtp

import (
	"net"
	"syscall"
	"testing"
)

// A host that vanishes closes nothing: only these options tell.
func TestVanishedHostsAreFoundByTheKernel(t *testing.T) {
	l, err := Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type result struct {
		conn *Conn
		err  error
	}
	server := make(chan result, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			server <- result{nil, err}
			return
		}
		conn, err := Accept(t.Context(), nc, Config{}, "ROUTER")
		server <- result{conn, err}
	}()
	dialled, err := Dial(t.Context(), Config{Endpoint: "tcp://" + l.Addr().String()}, "DEALER")
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted := <-server
	if accepted.err != nil {
		t.Fatal(accepted.err)
	}
	defer accepted.conn.Close()
	for side, nc := range map[string]net.Conn{"dialled": dialled.net, "accepted": accepted.conn.net} {
		for _, o := range []struct{ level, option, want int }{
			{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 10},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 5},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
			{syscall.IPPROTO_TCP, tcpUserTimeout, 25_000},
		} {
			if got := option(t, nc, o.level, o.option); got != o.want {
				t.Errorf("%s: option %d of level %d is %d: want %d", side, o.option, o.level, got, o.want)
			}
		}
	}
}

func option(t *testing.T, nc net.Conn, level, option int) (value int) {
	t.Helper()
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var optErr error
	if err := raw.Control(func(fd uintptr) { value, optErr = syscall.GetsockoptInt(int(fd), level, option) }); err != nil || optErr != nil {
		t.Fatalf("read a socket's option: %v, %v", err, optErr)
	}
	return value
}
