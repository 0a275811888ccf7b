package ring

import (
	"crypto/sha256"
	"encoding/binary"
)

// Key names a backend on the wire, whatever slot each node has given it. Of a
// full table of 16,384 backends two share a key once in about 10^11 fleets.
func Key(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// Mix spreads the bits of x: the output function of SplitMix64 (Steele, Lea,
// Flood 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
