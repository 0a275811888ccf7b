package member

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"
)

// Meta is what a node says about itself; memberlist carries it to everyone.
type Meta struct {
	// Link is the address of the peer link, "ip:port".
	Link string
	// Boot is another number at each start of the process.
	Boot uint64
	// MinProtocol and MaxProtocol are the versions of the link's protocol it speaks.
	MinProtocol, MaxProtocol uint8
	// Cluster is the cluster's name. New sets it from the configuration.
	Cluster string
	// BlockSize is the bytes of a block.
	BlockSize int
	// KeyCheck tells hash keys apart without giving them away.
	KeyCheck uint64
	// Mixed tells whether another block size is borne. New sets it.
	Mixed bool
	// Zone is where the node runs, for people.
	Zone string
	// Client and Admin are the addresses of its HTTP ports, for people.
	Client, Admin string
}

// metaLayout is the first byte. What is added at the end keeps it: older nodes skip
// what they don't know. Only a change of what is there already raises it.
const metaLayout = 1

const (
	maxMetaString = 128 // of one field
	maxBlockSize  = 1 << 30
)

var errMetaShort = errors.New("metadata ends early")

// fields are the strings in the order of the wire.
func (m *Meta) fields() []*string {
	return []*string{&m.Cluster, &m.Link, &m.Zone, &m.Client, &m.Admin}
}

// encode gives m's wire form:
//
//	u8 layout | u64 boot | u8 min | u8 max | u32 block size | u64 key check | u8 flags |
//	five strings, each u8 length and bytes: cluster, link, zone, client, admin
//
// integers little-endian. It is at most memberlist.MetaMaxSize bytes, or an error.
func (m *Meta) encode() ([]byte, error) {
	b := make([]byte, 0, memberlist.MetaMaxSize)
	b = append(b, metaLayout)
	b = binary.LittleEndian.AppendUint64(b, m.Boot)
	b = append(b, m.MinProtocol, m.MaxProtocol)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.BlockSize))
	b = binary.LittleEndian.AppendUint64(b, m.KeyCheck)
	flags := byte(0)
	if m.Mixed {
		flags = 1
	}
	b = append(b, flags)
	for _, s := range m.fields() {
		if len(*s) > maxMetaString {
			return nil, fmt.Errorf("metadata string %.20q... has %d bytes, at most %d fit", *s, len(*s), maxMetaString)
		}
		b = append(append(b, byte(len(*s))), *s...)
	}
	if len(b) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("metadata has %d bytes, at most %d fit: shorten the zone or the addresses", len(b), memberlist.MetaMaxSize)
	}
	return b, nil
}

// decodeMeta reads what encode wrote, and skips what a newer node wrote behind it.
func decodeMeta(b []byte) (Meta, error) {
	const fixed = 1 + 8 + 2 + 4 + 8 + 1
	if len(b) < 1 {
		return Meta{}, errMetaShort
	}
	if b[0] != metaLayout {
		return Meta{}, fmt.Errorf("metadata of layout %d there, %d here", b[0], metaLayout)
	}
	if len(b) < fixed {
		return Meta{}, errMetaShort
	}
	m := Meta{
		Boot:        binary.LittleEndian.Uint64(b[1:]),
		MinProtocol: b[9], MaxProtocol: b[10],
		BlockSize: int(binary.LittleEndian.Uint32(b[11:])),
		KeyCheck:  binary.LittleEndian.Uint64(b[15:]),
		Mixed:     b[23]&1 != 0,
	}
	rest := b[fixed:]
	for _, s := range m.fields() {
		if len(rest) < 1 || len(rest) < 1+int(rest[0]) {
			return Meta{}, errMetaShort
		}
		*s = string(rest[1 : 1+int(rest[0])])
		rest = rest[1+len(*s):]
	}
	return m, m.sane()
}

// sane refuses what no node of ours would say.
func (m *Meta) sane() error {
	switch {
	case m.MinProtocol == 0 || m.MinProtocol > m.MaxProtocol:
		return fmt.Errorf("protocol range %d..%d is none", m.MinProtocol, m.MaxProtocol)
	case m.BlockSize <= 0 || m.BlockSize > maxBlockSize:
		return fmt.Errorf("block size %d is none", m.BlockSize)
	}
	for _, s := range m.fields() {
		if len(*s) > maxMetaString {
			return fmt.Errorf("a string has %d bytes, at most %d fit", len(*s), maxMetaString)
		}
	}
	return nil
}
