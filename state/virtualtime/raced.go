//go:build race

package virtualtime

// Raced is whether the race detector looks on: ten times slower, so that tests which
// measure quality, on one goroutine at a time, play less then. They are played in full
// without it.
const Raced = true
