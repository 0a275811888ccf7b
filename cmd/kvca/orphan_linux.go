package main

import "syscall"

// endWithUs has the kernel ask the command to end when the thread that started it is
// gone, as it is where this process is killed.
func endWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
