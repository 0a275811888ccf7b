//go:build unix

package main

import "syscall"

// descriptors are the soft and the hard limit on open files, 0 where unknown.
func descriptors() (soft, hard uint64) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0
	}
	return uint64(limit.Cur), uint64(limit.Max)
}
