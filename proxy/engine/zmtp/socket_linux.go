package zmtp

import "syscall"

const tcpUserTimeout = 0x12

// boundUnsent sets unsentTimeout; accepted connections inherit it. Where it can't
// be set, the write timeout and the peer's heartbeats remain.
func boundUnsent(network, _ string, c syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(unsentTimeout.Milliseconds()))
	})
}
