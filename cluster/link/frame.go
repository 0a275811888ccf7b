package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxFrame bounds a frame's kind and body together.
	MaxFrame = 1 << 20
	// frameHead is the length and the kind.
	frameHead = 5

	// baseBuffer is what a reader keeps; a longer frame gets a buffer of its own
	// size for as long as it is there.
	baseBuffer = 64 << 10
)

// Kinds of the link itself. Handlers see only those below kindLink.
const (
	kindLink   = 0xF0
	kindHello  = 0xF0
	kindRefuse = 0xF1
	kindPing   = 0xF2
	kindPong   = 0xF3
	kindBye    = 0xF4
	kindAccept = 0xF5
	kindProof  = 0xF6
)

// errGarbage ends a link: what came is no frame, or not one that may come here.
var errGarbage = errors.New("garbage on the link")

// appendFrame appends a frame of which size is the length of all parts together.
func appendFrame(b []byte, kind byte, size int, parts ...[]byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(size+1))
	b = append(b, kind)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// A frameReader cuts a stream into frames. Bodies lie in its buffer and are valid
// until the next call.
type frameReader struct {
	r     io.Reader
	limit int    // longest frame, kind and body
	read  func() // called after each read that brought something; may be nil

	buf        []byte
	start, end int
}

func (f *frameReader) next() (kind byte, body []byte, err error) {
	for {
		size, whole, err := f.peek()
		if err != nil {
			return 0, nil, err
		}
		if whole {
			b := f.buf[f.start+4 : f.start+size]
			f.start += size
			return b[0], b[1:], nil
		}
		if err := f.fill(size); err != nil {
			return 0, nil, err
		}
	}
}

// peek returns the next frame's size with its length, as far as it is known, and
// whether all of it is in the buffer.
func (f *frameReader) peek() (size int, whole bool, err error) {
	have := f.end - f.start
	if have < 4 {
		return frameHead, false, nil
	}
	n := binary.LittleEndian.Uint32(f.buf[f.start:])
	if n == 0 || n > uint32(f.limit) {
		return 0, false, fmt.Errorf("%w: a frame of %d bytes where 1 to %d may come", errGarbage, n, f.limit)
	}
	return int(n) + 4, have >= int(n)+4, nil
}

// fill reads once, into a buffer that has room for a frame of size.
func (f *frameReader) fill(size int) error {
	if f.start == f.end {
		f.start, f.end = 0, 0
		if len(f.buf) > baseBuffer {
			f.buf = nil
		}
	}
	if f.start+size > len(f.buf) {
		f.makeRoom(size)
	}
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	if n > 0 {
		if f.read != nil {
			f.read()
		}
		return nil
	}
	if err == io.EOF && f.end > f.start {
		return io.ErrUnexpectedEOF
	}
	return err
}

// widen is for after the handshake: frames may be long, and a buffer takes many.
func (f *frameReader) widen() {
	f.limit = MaxFrame
	f.makeRoom(frameHead)
}

// makeRoom moves what is there to the front of a buffer of fitting size: before
// the handshake is over no more than a hello needs, then the base size, unless a
// frame is longer.
func (f *frameReader) makeRoom(size int) {
	want := max(min(baseBuffer, f.limit+4), size)
	to := f.buf
	if len(to) != want {
		to = make([]byte, want)
	}
	f.end = copy(to, f.buf[f.start:f.end])
	f.start = 0
	f.buf = to
}
