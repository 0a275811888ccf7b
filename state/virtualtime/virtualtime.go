// Package virtualtime runs tests in virtual time. It is testing/synctest with one thing
// added for the race detector, and is imported by tests only.
package virtualtime

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

var (
	mu       sync.Mutex
	inside   int // bubbles that run now, from parallel tests
	parallel int // GOMAXPROCS to go back to when the last has ended
)

// Test runs f as synctest.Test does, in a bubble with a clock of its own. Under the
// race detector the whole process runs on one processor meanwhile: the runtime of
// Go 1.26 hands one race context to every thread that runs a timer of the bubble (the
// root's loop, a receive from a timer's channel, a Reset to a time that has come), and
// two of them at once damage its stack of calls, until the detector crashes with
// SIGSEGV in StackDepot. One processor never runs two timers at once. Races are found
// as before, since the detector goes by what happens before what, not by what
// happens at the same time.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if Raced {
		oneProcessor()
		defer asBefore()
	}
	synctest.Test(t, f)
}

func oneProcessor() {
	mu.Lock()
	defer mu.Unlock()
	if inside++; inside == 1 {
		parallel = runtime.GOMAXPROCS(1)
	}
}

func asBefore() {
	mu.Lock()
	defer mu.Unlock()
	if inside--; inside == 0 {
		runtime.GOMAXPROCS(parallel)
	}
}
