package member

import (
	"bytes"
	"compress/lzw"
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/vmihailenco/msgpack/v5"
)

// message is one of memberlist's, without a label.
func message(t *testing.T, kind byte, body map[string]any) []byte {
	t.Helper()
	b, err := msgpack.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{kind}, b...)
}

// inflated is a small message that unpacks to many megabytes.
func inflated(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, 8)
	_, err := w.Write(make([]byte, 30<<20))
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return message(t, compressMsg, map[string]any{"Algo": 0, "Buf": b.Bytes()})
}

func withLabel(b []byte) []byte {
	const label = "test/one"
	return append(append([]byte{244, byte(len(label))}, label...), b...)
}

func compound(parts ...[]byte) []byte {
	b := []byte{compoundMsg, byte(len(parts))}
	for _, p := range parts {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p)))
	}
	return append(b, bytes.Join(parts, nil)...)
}

func claims(t *testing.T) map[string][]byte {
	return map[string][]byte{
		"nodes":        message(t, pushPullMsg, map[string]any{"Nodes": 1 << 20}),
		"user state":   message(t, pushPullMsg, map[string]any{"UserStateLen": 20 << 20}),
		"user message": message(t, userMsg, map[string]any{"UserMsgLen": 20 << 20}),
		"compressed":   inflated(t),
	}
}

func allocated() uint64 {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.TotalAlloc
}

// most is what a few messages of at most 30 kB may make a cluster allocate, beside what it
// does anyway.
const most = 16 << 20

// What a message says of its size costs nothing until it has come.
func TestStreamsThatClaimMuchAreClosed(t *testing.T) {
	for name, claim := range claims(t) {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				n := r.start("a", "a", nil)
				before := allocated()
				for range 8 {
					c, err := r.net.Host("stranger").Dial(context.Background(), "a:7946")
					if err != nil {
						t.Fatal(err)
					}
					_, _ = c.Write(withLabel(claim))
					_ = c.SetReadDeadline(time.Now().Add(labelPatience + time.Second))
					if answer, _ := io.ReadAll(c); len(answer) > 0 {
						t.Errorf("the answer is %q", answer)
					}
					c.Close()
				}
				if got := allocated() - before; got > most {
					t.Errorf("%d MB were allocated for %d bytes", got>>20, 8*len(claim))
				}
				if got := n.counter("gossip_malformed_total", "transport=stream"); got != 8 {
					t.Errorf("%v of 8 streams were counted", got)
				}
			})
		})
	}
}

func TestAnswersThatClaimMuchAreNotRead(t *testing.T) {
	for name, claim := range claims(t) {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				l, err := r.net.Host("stranger").Listen(port)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						_, _ = c.Write(claim)
						_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
						_, _ = io.Copy(io.Discard, c)
						c.Close()
					}
				}()
				before := allocated()
				n := r.start("a", "a", []string{"stranger"})
				time.Sleep(10 * time.Second)
				if got := allocated() - before; got > most {
					t.Errorf("%d MB were allocated", got>>20)
				}
				if n.counter("gossip_malformed_total", "transport=stream") == 0 {
					t.Error("nothing was counted")
				}
			})
		})
	}
}

func TestCompressedPacketsAreNotUnpacked(t *testing.T) {
	small := inflated(t)
	for name, packet := range map[string][]byte{
		"alone": small, "in a compound": compound([]byte{0}, small), "in a compound of a compound": compound(compound(small)),
		"with a checksum": append([]byte{hasCrcMsg, 1, 2, 3, 4}, small...),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				n := r.start("a", "a", nil)
				from := r.net.Host("stranger").Packet(9).(memberlist.NodeAwareTransport)
				defer from.Shutdown()
				before := allocated()
				for range 4 {
					if _, err := from.WriteTo(withLabel(packet), "a:7946"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				if got := allocated() - before; got > most {
					t.Errorf("%d MB were allocated for %d bytes", got>>20, 4*len(packet))
				}
				if got := n.counter("gossip_malformed_total", "transport=packet"); got != 4 {
					t.Errorf("%v of 4 packets were counted", got)
				}
			})
		})
	}
}

func TestStatesOfOurNodesAreRead(t *testing.T) {
	head := func(nodes ...byte) []byte {
		b := append([]byte("\x83\xa4Join\xc3\xa5Nodes"), nodes...)
		return append(b, "\xacUserStateLen\x00and what follows"...)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want bool
	}{
		{"few nodes", head(3), true},
		{"as memberlist writes 256", head(0xd1, 1, 0), true},
		{"unsigned", head(0xcd, 1, 0), true},
		{"too many", head(0xd1, 0x7f, 0xff), false},
		{"many more", head(0xcf, 255, 255, 255, 255, 255, 255, 255, 255), false},
		{"fewer than none", head(0xd1, 0xff, 0xff), false},
		{"not a number", head(0xc0), false},
		{"cut", head(3)[:12], false},
		{"cut in a number", []byte("\x81\xa5Nodes\xd1\x01"), false},
		{"nothing", nil, false},
		{"not a map", []byte{0x93, 1, 2, 3}, false},
		{"an unknown field", []byte("\x81\xa1x\x01"), false},
	} {
		if got := modestState(c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzBeginning looks for what makes the gate's look at strangers' bytes fail.
func FuzzBeginning(f *testing.F) {
	f.Add([]byte("\x06\x83\xa4Join\xc3\xa5Nodes\x03\xacUserStateLen\x00"))
	f.Add(compound([]byte{0, 1}, []byte{compressMsg, 2}))
	f.Add([]byte{hasCrcMsg, 1, 2, 3, 4, compoundMsg, 2, 0, 1, 0, 9, 5})
	f.Fuzz(func(_ *testing.T, b []byte) {
		inflates(b)
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write(b)
			theirs.Close()
		}()
		begin(ours).modest()
		ours.Close()
	})
}
