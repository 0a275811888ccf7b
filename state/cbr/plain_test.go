package cbr

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The vector step and the step in Go alone must stop at the same byte, whatever
// it is and wherever it stands, and write no further than slack allows.
func TestBothCopiesStopAtTheSameByte(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	const guard = 0xEE
	for length := range 140 {
		for special := range 256 {
			src := make([]byte, length)
			for i := range src {
				src[i] = byte(' ' + r.IntN(95))
				if src[i] == '"' || src[i] == '\\' {
					src[i] = 'x'
				}
			}
			at := 0
			if length > 0 {
				at = r.IntN(length)
				src[at] = byte(special)
			}
			stops := length
			if length > 0 && (special < ' ' || special == '"' || special == '\\') {
				stops = at
			}
			from := r.IntN(stops + 1)
			for name, copyText := range map[string]func([]byte, int, []byte, int, uint64) (int, int, uint64){"vector": copyPlain, "words": copyWords} {
				dst := bytes.Repeat([]byte{guard}, length+2*slack)
				end, n, high := copyText(src, from, dst, 3, 0)
				if end != stops || n != 3+stops-from || !bytes.Equal(dst[3:n], src[from:stops]) {
					t.Fatalf("%s: length %d, byte %#x at %d, from %d: stopped at %d, want %d", name, length, special, at, from, end, stops)
				}
				if wide := special >= 0x80 && at >= from && length > 0; wide && high&highs == 0 {
					t.Fatalf("%s: byte %#x at %d was taken for ASCII", name, special, at)
				}
				if i := bytes.IndexFunc(dst[min(n+32, len(dst)):], func(r rune) bool { return r != rune(guard) && r != 0xFFFD }); i >= 0 {
					t.Fatalf("%s: wrote %d bytes beyond the text", name, 32+i)
				}
			}
		}
	}
}
