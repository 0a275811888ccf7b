//go:build !unix

package main

import "os"

// terminalSize is unknown here.
func terminalSize(*os.File) (width, height int, ok bool) { return 0, 0, false }
