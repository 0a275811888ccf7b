//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a group of its own: engines have children.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithUs(cmd.SysProcAttr)
}

// endGroup asks all of the group to end, killGroup ends them. Who is gone already is
// no error.
func endGroup(cmd *exec.Cmd)  { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
