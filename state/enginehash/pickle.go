package enginehash

import (
	"encoding/binary"
	"math"
)

// pickle writes Python's pickle protocol 5 as CPython's C code does: all in
// frames, and each string and tuple remembered in the memo.
type pickle struct{}

const (
	pickleProto    = "\x80\x05"
	pickleFrame    = 0x95
	frameHead      = 1 + 8 // the opcode and the frame's length
	frameTarget    = 64 << 10
	pickleMemoize  = 0x94
	pickleBinGet   = 'h' // from the memo
	pickleNone     = 'N'
	pickleMark     = '('
	pickleTuple    = 't'  // of all since the mark
	pickleTuple1   = 0x85 // of the last one; the next two opcodes: of the last two, three
	pickleInt8     = 'K'  // unsigned
	pickleInt16    = 'M'  // unsigned
	pickleInt32    = 'J'  // signed
	pickleLong     = 0x8a // a byte for the length, then little endian
	pickleBytes8   = 'C'  // a byte for the length
	pickleText8    = 0x8c // a byte for the length
	pickleText32   = 'X'  // four bytes for the length
	pickleStop     = '.'
	maxShortTuple  = 3
	maxShortLength = 0xff
)

// pickler is a pickle that is being written.
type pickler struct {
	b     []byte
	frame int // where the open frame's head begins, -1 while none is open
	memo  int // objects in the memo
	media int // where in the memo the tag of media is, -1 while it is not
}

func newPickler(dst []byte) pickler {
	p := pickler{b: append(dst, pickleProto...), media: -1}
	p.open()
	return p
}

func (pickle) text(dst []byte, s string) []byte {
	p := newPickler(dst)
	p.str(s)
	return p.end()
}

func (pickle) block(dst, parent []byte, tokens []uint32, extras []extra, untagged bool) []byte {
	p := newPickler(dst)
	p.b = append(append(p.b, pickleBytes8, byte(len(parent))), parent...)
	p.memoize()
	p.beginTuple(len(tokens))
	for _, t := range tokens {
		p.int(int64(t))
	}
	p.endTuple(len(tokens))
	if len(extras) == 0 {
		p.boundary()
		p.b = append(p.b, pickleNone)
	} else {
		p.beginTuple(len(extras))
		for i := range extras {
			p.extra(&extras[i], untagged)
		}
		p.endTuple(len(extras))
	}
	p.endTuple(3)
	return p.end()
}

func (p *pickler) extra(e *extra, untagged bool) {
	switch {
	case untagged && e.kind == extraMedia:
		p.str(e.a)
		p.int(e.offset)
		p.endTuple(2)
	case untagged:
		p.str(e.a)
	case e.kind == extraLoRA:
		p.str(tagLoRA)
		p.str(e.a)
		p.str(e.b)
		p.endTuple(3)
	case e.kind == extraMedia:
		p.mediaTag()
		p.str(e.a)
		p.int(e.offset)
		p.endTuple(3)
	default:
		p.str(tagSalt)
		p.str(e.a)
		p.endTuple(2)
	}
}

// mediaTag writes the tag of media. It is one object wherever it occurs, so it is
// written once and taken from the memo after.
func (p *pickler) mediaTag() {
	if p.media < 0 {
		p.media = p.memo
		p.str(tagMedia)
		return
	}
	p.boundary()
	p.b = append(p.b, pickleBinGet, byte(p.media))
}

func (p *pickler) str(s string) {
	p.boundary()
	if len(s) <= maxShortLength {
		p.b = append(p.b, pickleText8, byte(len(s)))
	} else {
		p.b = binary.LittleEndian.AppendUint32(append(p.b, pickleText32), uint32(len(s)))
	}
	p.b = append(p.b, s...)
	p.memoize()
}

func (p *pickler) int(n int64) {
	p.boundary()
	switch {
	case n >= 0 && n <= math.MaxUint8:
		p.b = append(p.b, pickleInt8, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.b = append(p.b, pickleInt16, byte(n), byte(n>>8))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.b = binary.LittleEndian.AppendUint32(append(p.b, pickleInt32), uint32(n))
	default:
		p.long(n)
	}
}

// long writes a number of more than 32 bits: two's complement, as short as can be.
func (p *pickler) long(n int64) {
	size := 5
	for size < 8 && n>>(8*size-1) != 0 && n>>(8*size-1) != -1 {
		size++
	}
	p.b = append(p.b, pickleLong, byte(size))
	for i := range size {
		p.b = append(p.b, byte(n>>(8*i)))
	}
}

func (p *pickler) beginTuple(n int) {
	p.boundary()
	if n > maxShortTuple {
		p.b = append(p.b, pickleMark)
	}
}

func (p *pickler) endTuple(n int) {
	if n > maxShortTuple {
		p.b = append(p.b, pickleTuple)
	} else {
		p.b = append(p.b, pickleTuple1+byte(n-1))
	}
	p.memoize()
}

func (p *pickler) memoize() {
	p.b = append(p.b, pickleMemoize)
	p.memo++
}

// open begins a frame; close fills in its length.
func (p *pickler) open() {
	p.frame = len(p.b)
	p.b = append(p.b, pickleFrame, 0, 0, 0, 0, 0, 0, 0, 0)
}

func (p *pickler) close() {
	binary.LittleEndian.PutUint64(p.b[p.frame+1:], uint64(len(p.b)-p.frame-frameHead))
}

// boundary begins another frame where the open one is long enough; CPython looks
// before each object.
func (p *pickler) boundary() {
	if len(p.b)-p.frame-frameHead >= frameTarget {
		p.close()
		p.open()
	}
}

func (p *pickler) end() []byte {
	p.b = append(p.b, pickleStop)
	p.close()
	return p.b
}
