//go:build !linux

package main

import "os"

// readKeys knows no keys here; ctrl-C ends the picture.
func readKeys(*os.File, func()) (stop func()) { return func() {} }
