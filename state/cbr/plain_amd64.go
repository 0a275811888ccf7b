package cbr

import "golang.org/x/sys/cpu"

var hasAVX2 = cpu.X86.HasAVX2

// copyPlainAVX2 copies n bytes of src in steps of 32 up to the first quote,
// backslash or control character, or until less than a step is left, and returns
// how many it has copied; high is not zero if one of them may be no ASCII. Up to
// 31 bytes beyond those copied are written as well.
//
//go:noescape
func copyPlainAVX2(dst, src *byte, n int) (copied int, high uint64)

// copyPlain copies plain text up to the next special byte or the end of src, as
// copyWords does.
func copyPlain(src []byte, at int, dst []byte, n int, high uint64) (int, int, uint64) {
	if !hasAVX2 || len(src)-at < 32 {
		return copyWords(src, at, dst, n, high)
	}
	copied, wide := copyPlainAVX2(&dst[n], &src[at], len(src)-at)
	if wide != 0 {
		high |= highs
	}
	at, n = at+copied, n+copied
	if len(src)-at < 32 {
		return copyWords(src, at, dst, n, high)
	}
	return at, n, high
}
