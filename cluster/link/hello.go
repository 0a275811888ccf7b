package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Hello is what both sides of a link say first.
type Hello struct {
	Cluster string
	Node    string
	// Boot is the process: a new one with each start.
	Boot uint64
	// The versions of the protocol that this node speaks; the highest that both
	// sides speak is spoken.
	MinProtocol, MaxProtocol uint8
	BlockSize                int
	// KeyCheck is equal where both hash blocks with the same key.
	KeyCheck uint64
	// Role is what the sender is.
	Role Role
	// nonce is set where an agent takes part: what its credential is proved over.
	nonce nonce
}

// Role is what a side of a link is.
type Role uint8

// The roles. A node that knows no roles takes an agent for a node, and refuses it
// since their hash keys differ.
const (
	NodeRole Role = iota
	AgentRole
)

// A hello is, after its kind: "kvca", lowest and highest protocol (u8 each),
// boot (u64), key check (u64), block size (u32), cluster and node (u8 length and
// bytes each). Integers are little endian. What follows is for later versions and
// is skipped, so this layout never changes, whatever the protocol's version. An
// agent's hello, and the answer to it, have a role (u8) and a nonce there.
const (
	helloMagic = "kvca"
	helloFixed = len(helloMagic) + 2 + 8 + 8 + 4
	// maxHello bounds what is read from someone who has not said who he is.
	maxHello = 2048
	maxName  = 255
)

var errNotHello = errors.New("not a hello of this protocol")

func (h *Hello) validate() error {
	switch {
	case !utf8.ValidString(h.Node) || !utf8.ValidString(h.Cluster): // they become labels
		return errors.New("names must be of UTF-8")
	case h.Node == "" || len(h.Node) > maxName:
		return fmt.Errorf("node name of %d bytes: must be of 1 to %d", len(h.Node), maxName)
	case len(h.Cluster) > maxName:
		return fmt.Errorf("cluster name of %d bytes: must be of at most %d", len(h.Cluster), maxName)
	case h.MinProtocol > h.MaxProtocol:
		return fmt.Errorf("protocol range %d..%d is empty", h.MinProtocol, h.MaxProtocol)
	case h.BlockSize < 0 || h.BlockSize > 1<<31-1:
		return fmt.Errorf("block size %d is out of range", h.BlockSize)
	}
	return nil
}

func (h *Hello) append(b []byte) []byte {
	b = append(b, helloMagic...)
	b = append(b, h.MinProtocol, h.MaxProtocol)
	b = binary.LittleEndian.AppendUint64(b, h.Boot)
	b = binary.LittleEndian.AppendUint64(b, h.KeyCheck)
	b = binary.LittleEndian.AppendUint32(b, uint32(h.BlockSize))
	b = append(b, uint8(len(h.Cluster)))
	b = append(b, h.Cluster...)
	b = append(b, uint8(len(h.Node)))
	b = append(b, h.Node...)
	if h.nonce == (nonce{}) {
		return b
	}
	b = append(b, uint8(h.Role))
	return append(b, h.nonce[:]...)
}

func decodeHello(b []byte) (*Hello, error) {
	if len(b) < helloFixed || string(b[:len(helloMagic)]) != helloMagic {
		return nil, errNotHello
	}
	b = b[len(helloMagic):]
	h := &Hello{
		MinProtocol: b[0], MaxProtocol: b[1],
		Boot:      binary.LittleEndian.Uint64(b[2:]),
		KeyCheck:  binary.LittleEndian.Uint64(b[10:]),
		BlockSize: int(binary.LittleEndian.Uint32(b[18:])),
	}
	b = b[22:]
	var ok bool
	if h.Cluster, b, ok = cutString(b); !ok {
		return nil, errNotHello
	}
	if h.Node, b, ok = cutString(b); !ok {
		return nil, errNotHello
	}
	if len(b) >= 1+len(h.nonce) {
		h.Role = Role(b[0])
		copy(h.nonce[:], b[1:])
	}
	if err := h.validate(); err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	return h, nil
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}

// agree returns the version that both speak.
func agree(a, b *Hello) (uint8, error) {
	v := min(a.MaxProtocol, b.MaxProtocol)
	if v < max(a.MinProtocol, b.MinProtocol) {
		return 0, fmt.Errorf("no common protocol version: %s speaks %d..%d, %s speaks %d..%d",
			a.Node, a.MinProtocol, a.MaxProtocol, b.Node, b.MinProtocol, b.MaxProtocol)
	}
	return v, nil
}
