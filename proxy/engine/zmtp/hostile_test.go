package zmtp

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// changed is a good start of a peer with some bytes of its greeting set.
func changed(at int, b ...byte) []byte {
	g := raw("PUB")
	copy(g[at:], b)
	return g
}

func TestStrangersAreToldFromPublishers(t *testing.T) {
	hello := greeting[:]
	cases := map[string]struct {
		sends []byte
		want  string
	}{
		"HTTP server":       {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "no ZeroMQ socket"},
		"zeros":             {make([]byte, 64), "no ZeroMQ socket"},
		"ZMTP 2":            {changed(10, 1), "speaks ZMTP 1: want 3.0"},
		"PLAIN":             {changed(12, []byte("PLAIN")...), `mechanism "PLAIN"`},
		"CURVE":             {changed(12, []byte("CURVE")...), `mechanism "CURVE"`},
		"NULL and more":     {changed(12, []byte("NULL\x00X")...), "mechanism"},
		"REP socket":        {raw("REP"), `peer is a "REP" socket: want PUB or XPUB for our SUB`},
		"no type":           {appendCommand(bytes.Clone(hello), "READY", nil), "without a Socket-Type"},
		"property cut off":  {appendCommand(bytes.Clone(hello), "READY", []byte("\x0bSocket-Type\x00\x00\x00\x09PUB")), "property of 9 bytes, of which 3"},
		"name cut off":      {appendCommand(bytes.Clone(hello), "READY", []byte("\x0bSock")), "property cut off"},
		"refusal":           {appendCommand(bytes.Clone(hello), "ERROR", []byte("\x07no room")), `refused by the peer: "no room"`},
		"empty refusal":     {appendCommand(bytes.Clone(hello), "ERROR", nil), "without a reason"},
		"another command":   {appendCommand(bytes.Clone(hello), "HELLO", nil), `command "HELLO": want READY`},
		"nameless command":  {append(bytes.Clone(hello), flagCommand, 0), "without a name"},
		"message first":     {append(bytes.Clone(hello), 0, 1, 'x'), "message before READY"},
		"READY of 2^62":     {append(bytes.Clone(hello), flagCommand|flagLong, 0x40, 0, 0, 0, 0, 0, 0, 0), "command of 4611686018427387904 bytes"},
		"end in greeting":   {hello[:20], "read the greeting: unexpected EOF"},
		"end before READY":  {hello, "read READY: unexpected EOF"},
		"end within READY":  {raw("PUB")[:70], "unexpected EOF"},
		"nothing, then end": {nil, "read the greeting: unexpected EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				l, r := w.listen(), newRecorder()
				conf := w.config()
				conf.Failed = r.Failed
				subscribe(t, conf, r)
				nc := accept(t, l)
				if _, err := nc.Write(c.sends); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(c.want, "read") || strings.HasPrefix(c.want, "unexpected") {
					synctest.Wait()
					nc.Close()
				}
				if got := r.wait(t, 0); !strings.HasPrefix(got, "failed: ") || !strings.Contains(got, c.want) {
					t.Errorf("event %q: want a failure with %q", got, c.want)
				}
			})
		})
	}
}

func TestHandshakeThatTricklesIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		l, r := w.listen(), newRecorder()
		conf := w.config()
		conf.Failed = r.Failed
		subscribe(t, conf, r)
		nc := accept(t, l)
		start := time.Now()
		var trickle sync.WaitGroup
		trickle.Go(func() {
			for _, b := range raw("PUB") {
				if _, err := nc.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		if got := r.wait(t, 0); !strings.Contains(got, "timeout") || time.Since(start) > handshakeTimeout {
			t.Errorf("event %q after %v: want a timeout within %v", got, time.Since(start), handshakeTimeout)
		}
		nc.Close()
		trickle.Wait()
	})
}

func TestBrokenStreamsEndTheConnection(t *testing.T) {
	bomb := binary.BigEndian.AppendUint64([]byte{flagLong}, 1<<62)
	cases := map[string]struct {
		sends []byte
		want  string
	}{
		"length of 2^62":       {bomb, "frame of 4611686018427387904 bytes: want at most 1000"},
		"length of 2^64-1":     {append([]byte{flagLong}, bytes.Repeat([]byte{0xff}, 8)...), "frame of 18446744073709551615 bytes"},
		"frame too large":      {appendHeader(nil, 0, 1001), "frame of 1001 bytes: want at most 1000"},
		"message too large":    {bytes.Repeat(append(appendHeader(nil, flagMore, 1000), make([]byte, 1000)...), 3), "message of 3000 bytes or more: want at most 2500"},
		"nine frames":          {bytes.Repeat([]byte{flagMore, 0}, 9), "more than 8 frames"},
		"reserved flags":       {[]byte{0x08, 0}, "flags 0x08"},
		"command in two":       {[]byte{flagCommand | flagMore, 0}, "command of more than one frame"},
		"command too large":    {appendHeader(nil, flagCommand, maxCommand+1), "command of 65537 bytes"},
		"command with no name": {[]byte{flagCommand, 0}, "without a name"},
		"command cut short":    {[]byte{flagCommand, 2, 9, 'x'}, "without a name"},
		"PING without TTL":     {appendCommand(nil, "PING", []byte{1}), "PING of 1 bytes"},
		"refusal":              {appendCommand(nil, "ERROR", []byte("\x04busy")), `refused by the peer: "busy"`},
		"end within a frame":   {[]byte{0, 5, 'x'}, "unexpected EOF"},
		"end within a message": {[]byte{flagMore, 1, 'x'}, "unexpected EOF"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				l, r := w.listen(), newRecorder()
				conf := w.config()
				conf.MaxFrame, conf.MaxMessage = 1000, 2500
				subscribe(t, conf, r)
				nc := accept(t, l)
				if _, err := nc.Write(append(raw("PUB"), c.sends...)); err != nil {
					t.Fatal(err)
				}
				r.wait(t, 0)
				if c.want == "unexpected EOF" {
					nc.Close()
				}
				if got := r.wait(t, 1); !strings.HasPrefix(got, "disconnected: ") || !strings.Contains(got, c.want) {
					t.Errorf("event %q: want the end with %q", got, c.want)
				}
			})
		})
	}
}
