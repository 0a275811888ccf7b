package zmtp

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func newReader(b []byte) *reader {
	return &reader{src: bytes.NewReader(b), maxFrame: defaultMaxFrame, maxMessage: defaultMaxMessage}
}

func TestLengthsAllocateNothingUntilTheirBytesCome(t *testing.T) {
	for _, size := range []uint64{defaultMaxFrame, 1 << 62} {
		stream := binary.BigEndian.AppendUint64([]byte{flagLong}, size)
		r := newReader(append(stream, "ten bytes."...))
		if _, _, err := r.next(); err == nil {
			t.Errorf("a frame of %d bytes was read from ten: want an error", size)
		}
		if cap(r.message) > 2*pieceBytes {
			t.Errorf("a frame of %d bytes took %d bytes of memory for ten: want at most %d", size, cap(r.message), 2*pieceBytes)
		}
	}
}

func TestMemoryOfAHugeMessageIsGivenBack(t *testing.T) {
	stream := append(appendHeader(nil, 0, 8<<20), make([]byte, 8<<20)...)
	r := newReader(append(stream, 0, 1, 'x'))
	for range 2 {
		if _, _, err := r.next(); err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.message) > keepBytes {
		t.Errorf("%d bytes are kept: want at most %d", cap(r.message), keepBytes)
	}
}

func appendMessage(dst []byte, frames [][]byte) []byte {
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		dst = append(appendHeader(dst, flags, len(f)), f...)
	}
	return dst
}

// Whatever is sent arrives as it was, however the network cuts the stream and
// wherever commands stand.
func TestStreamsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := rapid.SliceOfN(rapid.Byte(), 0, 400)
		messages := rapid.SliceOfN(rapid.SliceOfN(frame, 1, maxParts), 1, 8).Draw(t, "messages")
		var stream []byte
		var commands int
		for _, m := range messages {
			for i := range m {
				if rapid.Bool().Draw(t, "command") {
					stream = appendCommand(stream, "PING", m[i])
					commands++
				}
				flags := byte(flagMore)
				if i == len(m)-1 {
					flags = 0
				}
				stream = append(appendHeader(stream, flags, len(m[i])), m[i]...)
			}
		}
		r := newReader(nil)
		r.src = iotest.OneByteReader(bytes.NewReader(stream))
		for len(messages) > 0 {
			frames, command, err := r.next()
			switch {
			case err != nil:
				t.Fatalf("read: %v", err)
			case frames == nil && len(command) == 0:
				t.Fatal("neither a message nor a command was read")
			case frames == nil:
				commands--
			case !slices.EqualFunc(frames, messages[0], bytes.Equal):
				t.Fatalf("read %q: want %q", frames, messages[0])
			default:
				messages = messages[1:]
			}
		}
		if _, _, err := r.next(); err != io.EOF || commands != 0 {
			t.Fatalf("at the end: %v with %d commands unread: want EOF and none", err, commands)
		}
	})
}

func FuzzReader(f *testing.F) {
	f.Add(appendMessage(nil, [][]byte{nil, []byte("topic"), make([]byte, 300)}))
	f.Add(appendCommand([]byte{flagMore, 0}, "PING", []byte("\x00\x09c")))
	f.Add(binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<62))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := newReader(stream)
		for {
			frames, command, err := r.next()
			if cap(r.message)+cap(r.command) > 4*len(stream)+4*pieceBytes {
				t.Fatalf("%d bytes took %d of memory", len(stream), cap(r.message)+cap(r.command))
			}
			if err != nil {
				return
			}
			if len(frames) == 0 {
				_, _, _ = splitCommand(command)
				continue
			}
			again, _, err := newReader(appendMessage(nil, frames)).next()
			if err != nil || !slices.EqualFunc(frames, again, bytes.Equal) {
				t.Fatalf("%q was read from %q: %v", again, frames, err)
			}
		}
	})
}

// The handshake reads what anyone may send who reaches the port.
func FuzzHandshake(f *testing.F) {
	f.Add(raw("PUB"))
	f.Add(appendCommand(bytes.Clone(greeting[:]), "ERROR", []byte("\x04busy")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		c := &Conn{socketType: "SUB", in: *newReader(stream)}
		if c.readGreeting() == nil {
			_ = c.readReady()
		}
		if len(stream) < greetingBytes {
			return
		}
		theirs, err := peerType(stream[greetingBytes:])
		if err == nil && !bytes.Contains(stream, []byte(theirs)) {
			t.Fatalf("type %q is not in the stream", theirs)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	stream := appendMessage(nil, [][]byte{[]byte("kv-events"), make([]byte, 8), make([]byte, 512)})
	src := bytes.NewReader(stream)
	r := newReader(nil)
	r.src = src
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(stream)
		if _, _, err := r.next(); err != nil {
			b.Fatal(err)
		}
	}
}
