//go:build !unix

package link

const canAttempt = false

func writeNow(uintptr, []byte) (int, error) { return 0, nil }
