//go:build !amd64

package cbr

// copyPlain copies plain text up to the next special byte or the end of src, as
// copyWords does.
func copyPlain(src []byte, at int, dst []byte, n int, high uint64) (int, int, uint64) {
	return copyWords(src, at, dst, n, high)
}
