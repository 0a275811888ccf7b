package zmtp

import (
	"net"
	"syscall"
)

const tcpUserTimeout = 0x12

// boundUnsent sets unsentTimeout, which not every kernel lets an accepted connection
// inherit. Where it can't be set, the write timeout and the peer's heartbeats remain.
func boundUnsent(nc net.Conn) {
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unsentTimeout.Milliseconds()))
	})
}
