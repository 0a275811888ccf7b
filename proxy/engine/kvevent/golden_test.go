package kvevent_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
)

// wireEvent is an event as another decoder reads it.
type wireEvent struct {
	Type      string     `json:"type"`
	Hashes    []any      `json:"block_hashes"`
	Parent    any        `json:"parent_block_hash"`
	Tokens    []uint32   `json:"token_ids"`
	BlockSize int        `json:"block_size"`
	Medium    string     `json:"medium"`
	LoRA      string     `json:"lora_name"`
	Extra     [][]string `json:"extra_keys"`
	Group     *int       `json:"group_idx"`
	SpecKind  string     `json:"kv_cache_spec_kind"`
}

// hashOf is a block's name: a number, or the end of a digest.
func hashOf(t *testing.T, v any) uint64 {
	t.Helper()
	s, base := "", 10
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		digest := strings.TrimPrefix(v, "bytes:")
		s, base = digest[len(digest)-16:], 16
	}
	h, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		t.Fatalf("hash %v: %v", v, err)
	}
	return h
}

func (w *wireEvent) event(t *testing.T) kvevent.Event {
	t.Helper()
	e := kvevent.Event{Group: -1, SpecKind: w.SpecKind}
	var hashes []uint64
	for _, h := range w.Hashes {
		hashes = append(hashes, hashOf(t, h))
	}
	if w.Group != nil {
		e.Group = *w.Group
	}
	switch w.Type {
	case "BlockStored":
		e.Stored = kvindex.Stored{Hashes: hashes, Tokens: w.Tokens, BlockSize: w.BlockSize, LoRA: w.LoRA}
		if w.Parent != nil {
			e.Stored.Parent, e.Stored.HasParent = hashOf(t, w.Parent), true
		} else if len(w.Extra) > 0 && len(w.Extra[0]) > 0 {
			e.Stored.Salt = w.Extra[0][0]
		}
	case "BlockRemoved":
		e.Kind, e.Hashes = kvevent.Removed, hashes
	case "AllBlocksCleared":
		e.Kind = kvevent.Cleared
	default:
		t.Fatalf("a %s in the vectors", w.Type)
	}
	return e
}

// frame is a line of testdata/frames.jsonl.
type frame struct {
	From    string            `json:"from"`
	Payload string            `json:"payload"`
	Decoded []json.RawMessage `json:"decoded"`
}

func frames(t testing.TB) []frame {
	t.Helper()
	raw, err := os.ReadFile("testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []frame
	for line := range bytes.Lines(raw) {
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}

func TestEventsOfARealEngine(t *testing.T) {
	var d kvevent.Decoder
	compared := 0
	for _, f := range frames(t) {
		b := decode(t, &d, f.Payload)
		if b.Damaged+b.Skipped != 0 || !b.HasRank || b.Rank != 0 || len(b.Events) == 0 {
			t.Errorf("%s: %d events, %d damaged (%s), %d skipped, rank %v %d", f.From, len(b.Events), b.Damaged, b.Problem, b.Skipped, b.HasRank, b.Rank)
		}
		if f.Decoded == nil {
			continue
		}
		var at float64
		var want []wireEvent
		numbers := json.NewDecoder(bytes.NewReader(f.Decoded[1]))
		numbers.UseNumber()
		if err := numbers.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(f.Decoded[0], &at); err != nil || b.Time != at {
			t.Errorf("%s: time %v, want %v (%v)", f.From, b.Time, at, err)
		}
		var events []kvevent.Event
		for i := range want {
			events = append(events, want[i].event(t))
		}
		if !reflect.DeepEqual(b.Events, events) {
			t.Errorf("%s: got %+v, want %+v", f.From, b.Events, events)
		}
		compared += len(events)
	}
	if compared < 20 {
		t.Errorf("only %d events were compared", compared)
	}
}

func decode(t testing.TB, d *kvevent.Decoder, payload string) *kvevent.Batch {
	t.Helper()
	raw, err := hex.DecodeString(payload)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Decode(raw)
	if err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return b
}

// inBatch is a batch of the given events in hex, one rank 0.
func inBatch(events ...string) string {
	return "93cb3ff8000000000000" + strconv.FormatInt(int64(0x90+len(events)), 16) + strings.Join(events, "") + "00"
}

// What compiled encoders of the engines' own releases write.
func TestGoldenPayloads(t *testing.T) {
	stored := func(s kvindex.Stored, group int, kind string) kvevent.Event {
		return kvevent.Event{Stored: s, Tier: s.Tier, Group: group, SpecKind: kind}
	}
	mixed := kvindex.MixExtra(0, "mm", -3)
	one := kvindex.Stored{Hashes: []uint64{1}, Tokens: []uint32{10, 11}, BlockSize: 2}
	salted := one
	salted.Salt, salted.Extras = "a", []uint64{mixed}
	minusFive := ^uint64(4)
	removed := kvevent.Event{Kind: kvevent.Removed, Hashes: []uint64{1}, Group: 0}
	for _, row := range []struct {
		what, payload string
		want          []kvevent.Event
		noRank        bool
	}{
		{
			"v0.9", "93cb3ff80000000000009196ab426c6f636b53746f7265649201cf8000000000000000c0940a0b0c0d02c000",
			[]kvevent.Event{stored(kvindex.Stored{Hashes: []uint64{1, 1 << 63}, Tokens: []uint32{10, 11, 12, 13}, BlockSize: 2}, -1, "")},
			false,
		},
		{
			"v0.23", "93cb3ff8000000000000919cab426c6f636b53746f7265649101c0920a0b02c0a3475055c0c000ae66756c6c5f617474656e74696f6ec000",
			[]kvevent.Event{stored(one, 0, "full_attention")},
			false,
		},
		{"v0.23 removed", inBatch("94ac426c6f636b52656d6f7665649101a347505500"), []kvevent.Event{removed}, false},
		{
			"v0.24", "93cb3ff8000000000000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739101b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473920a0baa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b6579739192a16192a26d6dfda967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e00",
			[]kvevent.Event{stored(salted, 0, "full_attention")},
			false,
		},
		{"v0.24 removed", inBatch("84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739101a66d656469756da3475055a967726f75705f69647800"), []kvevent.Event{removed}, false},
		{"v0.24 cleared", inBatch("81a474797065b0416c6c426c6f636b73436c6561726564"), []kvevent.Event{{Kind: kvevent.Cleared, Group: -1}}, false},
		{"empty", "93cb3ff800000000000090c0", nil, true},
		{
			"short digest", inBatch("94ac426c6f636b52656d6f76656491c404abababaca347505500"),
			[]kvevent.Event{{Kind: kvevent.Removed, Hashes: []uint64{0xabababac}, Group: 0}},
			false,
		},
		{
			"SGLang, salted", inBatch("98ab426c6f636b53746f72656491fbc0920a0b02c0a347505581aa63616368655f73616c74a27331"),
			[]kvevent.Event{stored(kvindex.Stored{Hashes: []uint64{minusFive}, Tokens: []uint32{10, 11}, BlockSize: 2, Salt: "s1"}, -1, "")},
			false,
		},
	} {
		b := decode(t, new(kvevent.Decoder), row.payload)
		if !slices.EqualFunc(b.Events, row.want, func(a, b kvevent.Event) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: got %+v, want %+v", row.what, b.Events, row.want)
		}
		if b.Time != 1.5 || b.HasRank == row.noRank || b.Rank != 0 || b.Damaged+b.Skipped != 0 {
			t.Errorf("%s: time %v, rank %v, %d damaged, %d skipped", row.what, b.Time, b.HasRank, b.Damaged, b.Skipped)
		}
	}
}
