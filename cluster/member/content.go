package member

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net"
)

// Where gossip is not encrypted, anyone may send. memberlist takes a message's word
// for its size, up to tens of megabytes, and unpacks a thousand times of what came. So
// the gate looks first: nodes of ours compress nothing, send no user messages by
// streams, and tell of so many members and of no state beside them.

// memberlist's message types.
const (
	pushPullMsg = 6
	compoundMsg = 7
	userMsg     = 8
	compressMsg = 9
	hasCrcMsg   = 12
	errMsg      = 13 // carries an error's text
)

const (
	crcHead   = 5
	stateHead = 64              // more than a state's header has, less than one with a node
	maxStates = 16 * maxMembers // nodes in a state; the dead are in it for a while
)

var errImmodest = errors.New("gossip stream claims more than a node of ours sends")

// inflates tells whether a packet holds something compressed.
func inflates(b []byte) bool {
	if len(b) >= crcHead && b[0] == hasCrcMsg {
		b = b[crcHead:]
	}
	if len(b) < 2 || b[0] != compoundMsg {
		return len(b) > 0 && b[0] == compressMsg
	}
	n := int(b[1])
	if b = b[2:]; len(b) < 2*n {
		return false
	}
	sizes, parts := b[:2*n], b[2*n:]
	for ; len(sizes) > 0; sizes = sizes[2:] {
		size := int(binary.BigEndian.Uint16(sizes))
		if size > len(parts) {
			return false // memberlist leaves off here too
		}
		if size > 0 && (parts[0] == compressMsg || parts[0] == compoundMsg) {
			return true
		}
		parts = parts[size:]
	}
	return false
}

// begun is a stream whose beginning may be looked at before it is read.
type begun struct {
	net.Conn
	r *bufio.Reader
}

func begin(c net.Conn) *begun { return &begun{c, bufio.NewReaderSize(c, maxAnswer)} }

func (b *begun) Read(p []byte) (int, error) { return b.r.Read(p) }

// modest waits for a stream's first bytes and tells whether a node of ours may
// have sent them. What ends before is memberlist's to complain of.
func (b *begun) modest() bool {
	kind, err := b.r.Peek(1)
	if err != nil {
		return true
	}
	switch kind[0] {
	case compressMsg, userMsg:
		return false
	case pushPullMsg:
		head, _ := b.r.Peek(1 + stateHead)
		return modestState(head[1:])
	}
	return true
}

// modestState looks at the header of an exchange of states, a small msgpack map.
func modestState(b []byte) bool {
	if len(b) == 0 || b[0]&0xf0 != 0x80 {
		return false
	}
	fields := int(b[0] & 0x0f)
	b = b[1:]
	for range fields {
		kind, size := scalar(b)
		if kind != 's' || size > len(b) {
			return false
		}
		name := string(b[1:size]) // of short ones; others are none that is known
		if b = b[size:]; len(b) == 0 {
			return false
		}
		n, size := number(b)
		switch {
		case name == "Join" && (b[0] == 0xc2 || b[0] == 0xc3):
			size = 1
		case name == "Nodes" && n <= maxStates:
		case name == "UserStateLen" && n == 0:
		default:
			return false
		}
		if size == 0 || size > len(b) {
			return false
		}
		b = b[size:]
	}
	return true
}

// number reads the whole number that begins b; size 0 for anything else or less.
func number(b []byte) (n uint64, size int) {
	c := b[0]
	if c < 0x80 {
		return uint64(c), 1
	}
	if c < 0xcc || c > 0xd3 { // unsigned, then signed, of 1, 2, 4 and 8 bytes each
		return 0, 0
	}
	size = 1 + 1<<((c-0xcc)%4)
	if size > len(b) {
		return 0, 0
	}
	signed := c >= 0xd0
	if signed && b[1] >= 0x80 {
		return 0, 0
	}
	for _, v := range b[1:size] {
		n = n<<8 | uint64(v)
	}
	return n, size
}
