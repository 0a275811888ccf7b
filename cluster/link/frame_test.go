package link

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestFramesAreReadHoweverTheyCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type frame struct {
			kind byte
			body []byte
		}
		var sent []frame
		var stream []byte
		for range rapid.IntRange(0, 20).Draw(t, "frames") {
			size := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(baseBuffer-20, baseBuffer+20), rapid.Just(MaxFrame-1)).Draw(t, "size")
			f := frame{rapid.Byte().Draw(t, "kind"), bytes.Repeat([]byte{byte(len(sent))}, size)}
			sent = append(sent, f)
			stream = appendFrame(stream, f.kind, size, f.body)
		}
		in := frameReader{r: &shortReader{t: t, r: bytes.NewReader(stream)}, limit: MaxFrame}
		for i, f := range sent {
			kind, body, err := in.next()
			if err != nil || kind != f.kind || !bytes.Equal(body, f.body) {
				t.Fatalf("frame %d: kind %d, %d bytes, %v", i, kind, len(body), err)
			}
		}
		if _, _, err := in.next(); err != io.EOF {
			t.Fatalf("after the last: %v", err)
		}
		if len(in.buf) > MaxFrame+4 {
			t.Fatalf("the buffer has %d bytes", len(in.buf))
		}
	})
}

// shortReader reads as much at a time as a property test says.
type shortReader struct {
	t *rapid.T
	r io.Reader
}

func (s *shortReader) Read(b []byte) (int, error) {
	most := rapid.SampledFrom([]int{1 << 20, 1 << 16, 1 << 15}).Draw(s.t, "most")
	return s.r.Read(b[:min(len(b), most)])
}

func TestLongFrameKeepsNoBuffer(t *testing.T) {
	stream := appendFrame(nil, 1, MaxFrame-1, make([]byte, MaxFrame-1))
	stream = appendFrame(stream, 2, 0)
	in := frameReader{r: bytes.NewReader(stream), limit: maxHello}
	in.widen()
	for range 2 {
		if _, _, err := in.next(); err != nil {
			t.Fatal(err)
		}
	}
	if len(in.buf) != baseBuffer {
		t.Errorf("the buffer has %d bytes", len(in.buf))
	}
}

func TestBrokenOffFrameIsNoEnd(t *testing.T) {
	in := frameReader{r: bytes.NewReader(appendFrame(nil, 1, 3, []byte("ab"))), limit: MaxFrame}
	if _, _, err := in.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func FuzzFrames(f *testing.F) {
	h := hello("a", 1)
	f.Add(appendFrame(nil, kindHello, 0, h.append(nil)))
	f.Add(appendFrame(appendFrame(nil, 1, 2, []byte("ab")), 2, 0))
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		whole := frameReader{r: bytes.NewReader(data), limit: maxHello}
		single := frameReader{r: iotest.OneByteReader(bytes.NewReader(data)), limit: maxHello}
		for {
			kind, body, err := whole.next()
			kind1, body1, err1 := single.next()
			if kind != kind1 || !bytes.Equal(body, body1) || (err == nil) != (err1 == nil) {
				t.Fatalf("%d %q %v at once, %d %q %v byte by byte", kind, body, err, kind1, body1, err1)
			}
			if err != nil {
				break
			}
		}
		if len(whole.buf) > maxHello+4 {
			t.Fatalf("a buffer of %d bytes before a hello", len(whole.buf))
		}
	})
}

func FuzzHello(f *testing.F) {
	h := hello("node", 77)
	f.Add(h.append(nil))
	f.Add(append(h.append(nil), "what later versions add"...))
	f.Add([]byte("kvca"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := decodeHello(data)
		if err != nil {
			return
		}
		again := h.append(nil)
		if !bytes.HasPrefix(data, again) {
			t.Fatalf("%q decodes to %+v, which is %q", data, h, again)
		}
	})
}

func TestHighestCommonProtocolIsSpoken(t *testing.T) {
	for _, c := range []struct {
		a, b [2]uint8
		want uint8 // 0: none
	}{
		{[2]uint8{1, 2}, [2]uint8{1, 2}, 2},
		{[2]uint8{1, 2}, [2]uint8{2, 3}, 2},
		{[2]uint8{1, 1}, [2]uint8{1, 9}, 1},
		{[2]uint8{1, 2}, [2]uint8{3, 4}, 0},
	} {
		a, b := Hello{MinProtocol: c.a[0], MaxProtocol: c.a[1]}, Hello{MinProtocol: c.b[0], MaxProtocol: c.b[1]}
		v, err := agree(&a, &b)
		w, _ := agree(&b, &a)
		if v != c.want || w != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%v and %v speak %d and %d: %v", c.a, c.b, v, w, err)
		}
	}
}
