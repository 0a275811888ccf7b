package backend

import (
	"io"
	"testing"
)

func TestADetachedBodyEndsAsItStood(t *testing.T) {
	read := func(p *payload, n int) (int, error) { return p.Read(make([]byte, n)) }
	whole := &payload{rest: []byte("body")}
	if n, err := read(whole, 10); n != 4 || err != nil || !whole.sent() {
		t.Fatalf("%d, %v", n, err)
	}
	whole.detach()
	if n, err := read(whole, 10); n != 0 || err != io.EOF {
		t.Errorf("a body that was read whole gives %d, %v after it is detached", n, err)
	}
	part := &payload{rest: []byte("body")}
	if n, err := read(part, 2); n != 2 || err != nil || part.sent() {
		t.Fatalf("%d, %v", n, err)
	}
	part.detach()
	if n, err := read(part, 10); n != 0 || err != errPayloadGone {
		t.Errorf("a body that was cut gives %d, %v", n, err)
	}
	part.detach()
	if _, err := read(part, 10); err != errPayloadGone {
		t.Errorf("detached twice: %v", err)
	}
}
