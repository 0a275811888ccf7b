//go:build !unix

package main

import "os/exec"

func ownGroup(*exec.Cmd)      {}
func endGroup(cmd *exec.Cmd)  { _ = cmd.Process.Kill() } // there is no other signal
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
