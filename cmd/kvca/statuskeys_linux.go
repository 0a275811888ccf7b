package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// keyPoll is how often readKeys looks whether it is to end, in milliseconds.
const keyPoll = 100

// readKeys calls quit when the key q is struck, until what it returns is called, which
// also gives back the terminal as it was. Where in is no terminal it does nothing.
func readKeys(in *os.File, quit func()) (stop func()) {
	if in == nil {
		return func() {}
	}
	fd := int(in.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {}
	}
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO // keys come at once and unseen; ctrl-C stays
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &single); err != nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			if key := nextKey(fd); key == 'q' || key == 'Q' {
				quit()
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		unix.IoctlSetTermios(fd, unix.TCSETS, before)
	}
}

// nextKey is 0 where none is struck within keyPoll.
func nextKey(fd int) byte {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(ready, keyPoll); err != nil || n == 0 {
		return 0
	}
	var b [1]byte
	if n, err := unix.Read(fd, b[:]); err != nil || n == 0 {
		return 'q' // the terminal is gone
	}
	return b[0]
}
