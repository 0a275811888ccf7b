package accesslog

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strconv"

	"github.com/dchest/siphash"
)

// clients says what stands for a client's address in a line.
type clients struct {
	how    string
	k0, k1 uint64 // of the hashes
}

// newClients derives the hashes' key, so that they tell nothing of other uses of
// the same secret. There are few enough addresses to try them all, so without a
// secret a hash would hide nothing: then the key is random.
func newClients(how string, secret []byte) *clients {
	if len(secret) == 0 {
		secret = make([]byte, 16)
		rand.Read(secret) // never fails
	}
	key := sha256.Sum256(append([]byte("kvca access log client\x00"), secret...))
	return &clients{how: how, k0: binary.LittleEndian.Uint64(key[:8]), k1: binary.LittleEndian.Uint64(key[8:16])}
}

// append appends what stands for a, nothing for an address that is unknown.
func (c *clients) append(b []byte, a netip.Addr) []byte {
	a = a.Unmap().WithZone("")
	if !a.IsValid() {
		return b
	}
	switch c.how {
	case ClientFull:
		return a.AppendTo(b)
	case ClientNetwork:
		bits := 24
		if a.Is6() {
			bits = 48
		}
		p, err := a.Prefix(bits)
		if err != nil {
			return b
		}
		return p.AppendTo(b)
	case ClientHash:
		bytes := a.As16()
		h := siphash.Hash(c.k0, c.k1, bytes[:])
		for shift := 60; shift >= 0; shift -= 4 {
			b = strconv.AppendUint(b, h>>shift&15, 16)
		}
	}
	return b
}
