package zmtp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

const (
	flagMore    = 1 << 0
	flagLong    = 1 << 1
	flagCommand = 1 << 2

	maxParts   = 8
	maxCommand = 64 << 10

	// What arrives is read in pieces of this size, so that a length costs nothing
	// until its bytes come.
	pieceBytes = 64 << 10
	// A message's memory beyond this isn't kept for the next one.
	keepBytes = 1 << 20
)

// reader cuts a stream into messages and commands. Its memory is used again by the
// next message.
type reader struct {
	src        io.Reader
	maxFrame   int
	maxMessage int

	message []byte   // the parts of one message, end to end
	ends    []int    // where each part ends
	frames  [][]byte // the parts, once all are there
	command []byte
	partial bool // a message, or a frame, has begun and not ended
	whole   bool // message was given out
	head    [8]byte
}

// next reads the next message, or the body of a command that stands before its
// end; what it returns is valid until the next call. An error is final.
func (r *reader) next() (frames [][]byte, command []byte, err error) {
	if r.whole {
		r.reset()
	}
	for {
		flags, size, err := r.header()
		if err != nil {
			return nil, nil, err
		}
		if flags&flagCommand != 0 {
			command, err := r.readCommand(flags, size)
			return nil, command, err
		}
		if err := r.readPart(size); err != nil {
			return nil, nil, err
		}
		if flags&flagMore == 0 {
			return r.cut(), nil, nil
		}
	}
}

// header reads a frame's flags and length.
func (r *reader) header() (flags byte, size uint64, err error) {
	if _, err := io.ReadFull(r.src, r.head[:1]); err != nil {
		if r.partial {
			err = cutOff(err)
		}
		return 0, 0, err
	}
	r.partial = true
	flags = r.head[0]
	if flags&^(flagMore|flagLong|flagCommand) != 0 {
		return 0, 0, fmt.Errorf("frame with flags %#02x: want only MORE, LONG and COMMAND", flags)
	}
	length := r.head[:1]
	if flags&flagLong != 0 {
		length = r.head[:8]
	}
	if _, err := io.ReadFull(r.src, length); err != nil {
		return 0, 0, cutOff(err)
	}
	if len(length) == 1 {
		return flags, uint64(length[0]), nil
	}
	return flags, binary.BigEndian.Uint64(length), nil
}

// reset forgets a message that was given out.
func (r *reader) reset() {
	r.whole = false
	r.message, r.ends = r.message[:0], r.ends[:0]
	if cap(r.message) > keepBytes {
		r.message = nil
		clear(r.frames[:cap(r.frames)])
	}
}

// readPart appends one frame to the message.
func (r *reader) readPart(size uint64) error {
	switch {
	case len(r.ends) == maxParts:
		return fmt.Errorf("message of more than %d frames: want at most that", maxParts)
	case size > uint64(r.maxFrame):
		return fmt.Errorf("frame of %d bytes: want at most %d", size, r.maxFrame)
	case size > uint64(r.maxMessage-len(r.message)):
		return fmt.Errorf("message of %d bytes or more: want at most %d", uint64(len(r.message))+size, r.maxMessage)
	}
	var err error
	r.message, err = appendFrom(r.message, r.src, int(size))
	r.ends = append(r.ends, len(r.message))
	return err
}

// cut makes the message's frames.
func (r *reader) cut() [][]byte {
	r.whole, r.partial = true, false
	r.frames = r.frames[:0]
	from := 0
	for _, end := range r.ends {
		r.frames = append(r.frames, r.message[from:end:end])
		from = end
	}
	return r.frames
}

func (r *reader) readCommand(flags byte, size uint64) ([]byte, error) {
	if flags&flagMore != 0 {
		return nil, errors.New("command of more than one frame: want one")
	}
	if size > maxCommand {
		return nil, fmt.Errorf("command of %d bytes: want at most %d", size, maxCommand)
	}
	var err error
	r.command, err = appendFrom(r.command[:0], r.src, int(size))
	r.partial = len(r.ends) > 0
	return r.command, err
}

// appendFrom appends n bytes of src, taking memory only as they arrive.
func appendFrom(dst []byte, src io.Reader, n int) ([]byte, error) {
	for n > 0 {
		piece := min(n, pieceBytes)
		dst = slices.Grow(dst, piece)
		at := len(dst)
		if _, err := io.ReadFull(src, dst[at:at+piece]); err != nil {
			return dst, cutOff(err)
		}
		dst = dst[:at+piece]
		n -= piece
	}
	return dst, nil
}

// cutOff marks an end of the stream that falls within a frame or message.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendHeader appends a frame's flags and length.
func appendHeader(dst []byte, flags byte, size int) []byte {
	if size < 256 {
		return append(dst, flags, byte(size))
	}
	return binary.BigEndian.AppendUint64(append(dst, flags|flagLong), uint64(size))
}
