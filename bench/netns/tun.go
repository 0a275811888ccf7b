package netns

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	tunPath = "/dev/net/tun"
	tunName = "peers0"
)

// openTUN makes a TUN device in a namespace. A device belongs to the namespace of
// the thread that opens it, so the thread visits it.
func openTUN(ns string) (*os.File, error) {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("find the own namespace: %w", err)
	}
	defer home.Close()
	away, err := os.Open("/run/netns/" + ns)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("find namespace %s: %w", ns, err)
	}
	defer away.Close()
	if err := unix.Setns(int(away.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter namespace %s: %w", ns, err)
	}
	f, openErr := tun()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err != nil {
		// The thread stays locked: it ends with the goroutine, and nothing else runs
		// in the wrong namespace.
		return nil, fmt.Errorf("leave namespace %s: %w", ns, err)
	}
	runtime.UnlockOSThread()
	return f, openErr
}

// tun makes the device in the thread's namespace: whole IP packets, no headers of
// its own.
func tun() (*os.File, error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", tunPath, err)
	}
	request, err := unix.NewIfreq(tunName)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make %s: %w", tunName, err)
	}
	return os.NewFile(uintptr(fd), tunPath), nil // which polls it, since it does not block
}
