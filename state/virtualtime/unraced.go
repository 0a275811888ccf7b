//go:build !race

package virtualtime

// Raced is whether the race detector looks on.
const Raced = false
