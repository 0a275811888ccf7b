package feed

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"kvca/proxy/engine/kvevent"
)

// recorded are replays of a real engine.
func recorded(t testing.TB) map[string][][][]byte {
	data, err := os.ReadFile("testdata/replay.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]struct{ Messages [][]string }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	replays := map[string][][][]byte{}
	for name, r := range file {
		for _, m := range r.Messages {
			replays[name] = append(replays[name], frames(t, m...))
		}
	}
	return replays
}

func frames(t testing.TB, parts ...string) [][]byte {
	var list [][]byte
	for _, p := range parts {
		b, err := hex.DecodeString(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

func TestRecordedReplaysAreRead(t *testing.T) {
	want := map[string][]uint64{"from0": {0, 1, 2, 108}, "tail": {107, 108}, "beyond": nil}
	for name, messages := range recorded(t) {
		var got []uint64
		for i, m := range messages {
			seq, payload, end, err := reply(m)
			if err != nil {
				t.Fatalf("%s, message %d: %v", name, i, err)
			}
			if end != (i == len(messages)-1) {
				t.Errorf("%s, message %d: end %t", name, i, end)
			}
			if end {
				break
			}
			got = append(got, seq)
			if b, err := new(kvevent.Decoder).Decode(payload); err != nil || b.Damaged > 0 || len(b.Events) == 0 {
				t.Errorf("%s, message %d: %v", name, i, err)
			}
		}
		if !slices.Equal(got, want[name]) {
			t.Errorf("%s: batches %d, want %d", name, got, want[name])
		}
	}
}

func TestReplaysOfAllFormsAreRead(t *testing.T) {
	const seven, last = "0000000000000007", "ffffffffffffffff"
	for _, c := range []struct {
		name  string
		parts []string
		seq   uint64
		end   bool
		fault string
	}{
		{"old", []string{"", seven, "90"}, 7, false, ""},
		{"new", []string{"", "6b76", seven, "90"}, 7, false, ""},
		{"new without topic", []string{"", "", seven, "90"}, 7, false, ""},
		{"without delimiter", []string{"6b76", seven, "90"}, 7, false, ""},
		{"old end", []string{"", last, ""}, 1<<64 - 1, true, ""},
		{"new end", []string{"", "", last, ""}, 1<<64 - 1, true, ""},
		{"an empty batch", []string{"", "", seven, ""}, 7, false, ""},
		{"nothing", nil, 0, false, "0 frames"},
		{"only a delimiter", []string{""}, 0, false, "0 frames"},
		{"only a payload", []string{"", "90"}, 0, false, "1 frames"},
		{"a short number", []string{"", "07", "90"}, 0, false, "1 bytes, expected 8"},
		{"an end with a batch", []string{"", last, "90"}, 0, false, "end marker"},
	} {
		seq, _, end, err := reply(frames(t, c.parts...))
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: error %v, want one with %q", c.name, err, c.fault)
			}
			continue
		}
		if err != nil || seq != c.seq || end != c.end {
			t.Errorf("%s: number %d, end %t, error %v; want %d, %t", c.name, seq, end, err, c.seq, c.end)
		}
	}
}

// FuzzReply cuts data into frames of the lengths that its first bytes say.
func FuzzReply(f *testing.F) {
	for _, messages := range recorded(f) {
		for _, m := range messages {
			data := []byte{byte(len(m))}
			for _, frame := range m {
				data = append(data, byte(min(len(frame), 255)))
			}
			f.Add(append(data, slices.Concat(m...)...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var message [][]byte
		if len(data) > 0 {
			n := min(int(data[0])%9, len(data)-1)
			lengths, rest := data[1:1+n], data[1+n:]
			for _, l := range lengths {
				k := min(int(l), len(rest))
				message, rest = append(message, rest[:k]), rest[k:]
			}
		}
		seq, payload, end, err := reply(message)
		switch {
		case err != nil && (end || payload != nil):
			t.Error("an error and a batch")
		case end && (seq != 1<<64-1 || len(payload) > 0):
			t.Error("an end that is none")
		}
	})
}
