package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// DefaultClusterName is the cluster name whose derived key is used where nothing
// else is configured, so that two tools without configuration agree on a chain.
const DefaultClusterName = "kvca"

// keyDomain separates the chain's key from anything else that may one day be
// derived from a cluster's name.
const keyDomain = "kvca chain key v1\x00"

// keySize is the length of a SipHash key in bytes.
const keySize = 16

// Key is a SipHash key as its two 64-bit halves.
type Key struct{ K0, K1 uint64 }

// ParseKey reads a key of 32 hex digits, either case. The error says how many
// digits came, or which of them is none, and never repeats the key itself.
func ParseKey(hex32 string) (Key, error) {
	if len(hex32) != 2*keySize {
		return Key{}, fmt.Errorf("parse hash key: want %d hex digits, got %d characters", 2*keySize, len(hex32))
	}
	var raw [keySize]byte
	if n, err := hex.Decode(raw[:], []byte(hex32)); err != nil {
		return Key{}, fmt.Errorf("parse hash key: no hex digit in characters %d and %d", 2*n+1, 2*n+2)
	}
	return keyOf(raw[:]), nil
}

// DeriveKey makes the key of the cluster that has the given name: the first half
// of a SHA-256. The same name gives the same key on every node and in every
// version.
func DeriveKey(clusterName string) Key {
	sum := sha256.Sum256([]byte(keyDomain + clusterName))
	return keyOf(sum[:keySize])
}

func keyOf(raw []byte) Key {
	return Key{K0: binary.LittleEndian.Uint64(raw), K1: binary.LittleEndian.Uint64(raw[8:])}
}
