package kvevent_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
)

// pack is MessagePack of Go values, in hex: nil, bool, int, uint64, float64, string,
// []byte, and lists ([]any) and maps (pairs) of these.
func pack(v any) string { return hex.EncodeToString(appendAny(nil, v)) }

// pairs is a map in an order of its own: a key, a value, a key and so on.
type pairs []any

func appendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case []any:
		dst = msgp.AppendArrayHeader(dst, uint32(len(v)))
		for _, item := range v {
			dst = appendAny(dst, item)
		}
		return dst
	case pairs:
		dst = msgp.AppendMapHeader(dst, uint32(len(v)/2))
		for _, item := range v {
			dst = appendAny(dst, item)
		}
		return dst
	}
	dst, err := msgp.AppendIntf(dst, v)
	if err != nil {
		panic(err)
	}
	return dst
}

type list = []any

// storedArray is a stored event in an array, with all that the newest array has.
func storedArray() list {
	return list{
		"BlockStored",
		list{uint64(1<<63 + 5), 7},
		99,
		list{1, 200, 70000, 4},
		2, 3, "cpu", "sql",
		list{list{"sql", list{"img", -1}}, nil},
		2, "mla_attention", nil, "REMOTE",
	}
}

func onlyEvent(t *testing.T, event any) kvevent.Event {
	t.Helper()
	b := decode(t, new(kvevent.Decoder), inBatch(pack(event)))
	if len(b.Events) != 1 || b.Damaged+b.Skipped != 0 {
		t.Fatalf("%v: %d events, %d damaged (%s), %d skipped", event, len(b.Events), b.Damaged, b.Problem, b.Skipped)
	}
	return b.Events[0]
}

func TestStoredArraysOfAnyLength(t *testing.T) {
	whole := storedArray()
	for n := 2; n <= len(whole)+3; n++ {
		event := slices.Clone(whole[:min(n, len(whole))])
		for len(event) < n {
			event = append(event, list{"unheard of"})
		}
		want := kvevent.Event{Group: -1, Stored: kvindex.Stored{Hashes: []uint64{1<<63 + 5, 7}}}
		set := []func(){
			2:  func() { want.Stored.Parent, want.Stored.HasParent = 99, true },
			3:  func() { want.Stored.Tokens = []uint32{1, 200, 70000, 4} },
			4:  func() { want.Stored.BlockSize = 2 },
			6:  func() { want.Stored.Tier, want.Tier = kvindex.CPU, kvindex.CPU },
			5:  func() { want.Stored.LoRA = "\x00lora_id 3" }, // the base model's blocks are others
			7:  func() { want.Stored.LoRA = "sql" },
			8:  func() { want.Stored.Extras = []uint64{kvindex.MixExtra(0, "img", -1), 0} },
			9:  func() { want.Group = 2 },
			10: func() { want.SpecKind = "mla_attention" },
			12: func() { want.Remote = true },
		}
		for i := range min(n, len(set)) {
			if set[i] != nil {
				set[i]()
			}
		}
		if got := onlyEvent(t, event); !reflect.DeepEqual(got, want) {
			t.Errorf("%d elements: got %+v, want %+v", n, got, want)
		}
	}
}

func TestRemovedArraysOfAnyLength(t *testing.T) {
	whole := list{"BlockRemoved", list{1, 2}, "DISK", 3, "LOCAL", "more"}
	for n := 2; n <= len(whole); n++ {
		want := kvevent.Event{Kind: kvevent.Removed, Hashes: []uint64{1, 2}, Group: -1}
		if n > 2 {
			want.Tier = kvindex.SSD
		}
		if n > 3 {
			want.Group = 3
		}
		if got := onlyEvent(t, whole[:n]); !reflect.DeepEqual(got, want) {
			t.Errorf("%d elements: got %+v, want %+v", n, got, want)
		}
	}
}

func TestMapsOfAnyOrderWithUnknownKeys(t *testing.T) {
	event := pairs{
		"extra_keys",
		list{nil, list{list{"img", 4}}},
		"zzz",
		list{pairs{"deep", list{1, nil}}},
		"token_ids",
		list{1, 2, 3, 4},
		"block_hashes",
		list{5, 6},
		77, "a key that is no string", "parent_block_hash", nil, "block_size", 2,
		"lora_id", nil, "medium", nil, "type", "BlockStored", "group_idx", 1, "locality", "LOCAL", "lora_name", nil,
	}
	want := kvevent.Event{Group: 1, Stored: kvindex.Stored{
		Hashes: []uint64{5, 6}, Tokens: []uint32{1, 2, 3, 4}, BlockSize: 2, Extras: []uint64{0, kvindex.MixExtra(0, "img", 4)},
	}}
	if got := onlyEvent(t, event); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCopiesLeftAreRead(t *testing.T) {
	event := pairs{"type", "BlockRemoved", "block_hashes", list{5, 6}, "medium", "GPU", "remaining_copy_counts", list{0, 2}}
	want := kvevent.Event{Kind: kvevent.Removed, Hashes: []uint64{5, 6}, Group: -1, Counts: []int{0, 2}}
	if got := onlyEvent(t, event); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHashesOfAllFormsMeet(t *testing.T) {
	digest := append(make([]byte, 24), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfb)
	for _, form := range []any{-5, uint64(math.MaxUint64 - 4), digest} {
		e := onlyEvent(t, list{"BlockStored", list{form}, form, list{}, 16})
		if e.Stored.Hashes[0] != math.MaxUint64-4 || e.Stored.Parent != e.Stored.Hashes[0] || !e.Stored.HasParent {
			t.Errorf("%v: got %+v", form, e.Stored)
		}
	}
}

func TestMediumNamesTheTier(t *testing.T) {
	for medium, want := range map[any]kvindex.Tier{
		nil: kvindex.GPU, "GPU": kvindex.GPU, "gpu": kvindex.GPU, "Cpu_Pinned": kvindex.CPU, "CPU": kvindex.CPU,
		"STORAGE": kvindex.SSD, "FS": kvindex.SSD, "OBJ": kvindex.Remote, "EXTERNAL": kvindex.Remote, "what": kvindex.Remote,
	} {
		if e := onlyEvent(t, list{"BlockRemoved", list{1}, medium}); e.Tier != want {
			t.Errorf("%v: %v, want %v", medium, e.Tier, want)
		}
	}
}

func TestLocalityOtherThanLocalIsRemote(t *testing.T) {
	for locality, want := range map[any]bool{nil: false, "LOCAL": false, "REMOTE": true, "ORBIT": true} {
		e := onlyEvent(t, pairs{"type", "BlockRemoved", "block_hashes", list{1}, "locality", locality})
		if e.Remote != want {
			t.Errorf("%v: remote %v", locality, e.Remote)
		}
	}
}

// Extra keys are an adapter, media and a salt in one list; what is what depends on
// the place and on what else the event says.
func TestExtraKeysAreTakenApart(t *testing.T) {
	img, bare := kvindex.MixExtra(0, "img", -3), kvindex.MixExtra(0, "img", 0)
	embeds := kvindex.MixExtra(0, "\x00prompt_embeds", 0x0102030405060708)
	for _, row := range []struct {
		what               string
		lora, loraID       any
		parent             any
		keys               list
		wantLoRA, wantSalt string
		wantExtras         []uint64
	}{
		{what: "nothing", keys: list{nil, nil}},
		{what: "empty lists", keys: list{list{}, list{}}},
		{what: "salt", keys: list{list{"s"}, nil}, wantSalt: "s"},
		{what: "adapter", lora: "a", loraID: 1, keys: list{list{"a"}, list{"a"}}, wantLoRA: "a"},
		{what: "adapter and salt of one name", lora: "a", loraID: 1, keys: list{list{"a", "a"}, list{"a"}}, wantLoRA: "a", wantSalt: "a"},
		{what: "adapter known by its number only", loraID: 1, keys: list{list{"a", "s"}, list{"a"}}, wantLoRA: "a", wantSalt: "s"},
		{what: "adapter and media and salt", lora: "a", keys: list{list{"a", list{"img", -3}, "s"}, list{"a"}}, wantLoRA: "a", wantSalt: "s", wantExtras: []uint64{img, 0}},
		{what: "no salt after a parent", parent: 5, keys: list{list{"img"}, nil}, wantExtras: []uint64{bare, 0}},
		{what: "media without an offset", keys: list{list{"img", "s"}, list{"img"}}, wantSalt: "s", wantExtras: []uint64{bare, bare}},
		{what: "salt before embeddings", keys: list{list{"s", []byte{0, 1, 2, 3, 4, 5, 6, 7, 8}}, nil}, wantSalt: "s", wantExtras: []uint64{embeds, 0}},
		{
			what: "two items", keys: list{list{list{"img", -3}, list{"two", 9}}, nil},
			wantExtras: []uint64{kvindex.MixExtra(img, "two", 9), 0},
		},
		{what: "more keys than blocks", keys: list{nil, nil, list{"x"}}},
		{what: "an empty list", keys: list{}},
	} {
		e := onlyEvent(t, list{"BlockStored", list{1, 2}, row.parent, list{1, 2, 3, 4}, 2, row.loraID, "GPU", row.lora, row.keys})
		s := e.Stored
		if s.LoRA != row.wantLoRA || s.Salt != row.wantSalt || !reflect.DeepEqual(s.Extras, row.wantExtras) {
			t.Errorf("%s: adapter %q, salt %q, extras %x; want %q, %q, %x", row.what, s.LoRA, s.Salt, s.Extras, row.wantLoRA, row.wantSalt, row.wantExtras)
		}
	}
}

// Extras of a kind that nobody knows yet must not make different blocks equal.
func TestUnknownExtraKeysStillTellBlocksApart(t *testing.T) {
	seen := map[uint64]any{0: nil}
	for _, key := range (list{5, 6, list{"mm", "x", 1}, list{"mm", "x", 2}, list{1, 2}, pairs{"k", 1}, true, []byte("d")}) {
		e := onlyEvent(t, list{"BlockStored", list{1}, 9, list{1, 2}, 2, nil, nil, nil, list{list{key}}})
		if e.Stored.Extras == nil {
			t.Fatalf("%v: no extras", key)
		}
		if other, is := seen[e.Stored.Extras[0]]; is {
			t.Errorf("%v and %v are the same", key, other)
		}
		seen[e.Stored.Extras[0]] = key
	}
}

func TestSGLangsMapCarriesTheSalt(t *testing.T) {
	e := onlyEvent(t, list{"BlockStored", list{-5}, nil, list{10, 11}, 2, nil, "GPU", pairs{"new", list{1}, "cache_salt", "s1"}})
	if e.Stored.Salt != "s1" || e.Stored.LoRA != "" {
		t.Errorf("got %+v", e.Stored)
	}
	// A run with a parent has its parent's.
	e = onlyEvent(t, list{"BlockStored", list{-5}, 4, list{10, 11}, 2, nil, "GPU", pairs{"cache_salt", "s1"}})
	if e.Stored.Salt != "" {
		t.Errorf("a child has the salt %q", e.Stored.Salt)
	}
}

func TestFirstOfEachPairIsTheToken(t *testing.T) {
	e := onlyEvent(t, list{"BlockStored", list{-5, 6}, nil, list{list{10, 20}, list{20, 30}, list{30, 40000}, list{40000, 5}}, 2})
	if want := []uint32{10, 20, 30, 40000}; !slices.Equal(e.Stored.Tokens, want) {
		t.Errorf("got %v, want %v", e.Stored.Tokens, want)
	}
}

func TestPlaceholderOfAnOffloadedBlockIsRead(t *testing.T) {
	e := onlyEvent(t, pairs{
		"type", "BlockStored", "block_hashes",
		list{8},
		"parent_block_hash", nil, "token_ids",
		list{},
		"block_size", 0, "lora_id", nil, "medium", "CPU", "lora_name", nil, "group_idx", 0,
	})
	want := kvindex.Stored{Hashes: []uint64{8}, Tier: kvindex.CPU}
	if !reflect.DeepEqual(e.Stored, want) {
		t.Errorf("got %+v, want %+v", e.Stored, want)
	}
}

func TestUnknownTagIsPassedOver(t *testing.T) {
	for _, unknown := range (list{list{"BlockMoved", 1, list{2}}, pairs{"block_hashes", "odd", "type", "BlockMoved"}, list{"BlockMoved"}}) {
		b := decode(t, new(kvevent.Decoder), inBatch(pack(unknown), pack(list{"AllBlocksCleared"})))
		if b.Skipped != 1 || b.Damaged != 0 || len(b.Events) != 1 || b.Events[0].Kind != kvevent.Cleared {
			t.Errorf("%v: %+v", unknown, b)
		}
	}
}

// malformed are events whose end can be found but not what they say.
func malformed() map[string]any {
	removed := func(fields ...any) list { return append(list{"BlockRemoved"}, fields...) }
	stored := func(i int, v any) list {
		event := storedArray()
		event[i] = v
		return event
	}
	return map[string]any{
		"nil":                nil,
		"number":             5,
		"string":             "BlockStored",
		"empty list":         list{},
		"map without a tag":  pairs{"block_hashes", list{1}},
		"tag is a number":    list{5, list{1}},
		"tag comes twice":    pairs{"type", "BlockRemoved", "type", "BlockStored", "block_hashes", list{1}},
		"no hashes":          removed(),
		"map without hashes": pairs{"type", "BlockStored", "token_ids", list{1}},
		"hashes come twice":  pairs{"type", "BlockRemoved", "block_hashes", list{1}, "block_hashes", list{2}},
		"tokens come twice":  pairs{"type", "BlockStored", "block_hashes", list{1}, "token_ids", list{1}, "token_ids", list{1}},
		"copies come twice": pairs{
			"type", "BlockRemoved", "block_hashes", list{1, 2}, "remaining_copy_counts", list{1}, "remaining_copy_counts", list{1},
		},
		"hashes are a number":    removed(5),
		"hash is a string":       removed(list{1, "x"}),
		"hash is nil":            removed(list{nil}),
		"hash is no bytes":       removed(list{[]byte{}}),
		"hash is a float":        removed(list{1.5}),
		"medium is a number":     removed(list{1}, 5),
		"group is negative":      removed(list{1}, nil, -1),
		"group is huge":          removed(list{1}, nil, uint64(1<<32)),
		"parent is a list":       stored(2, list{}),
		"tokens are a map":       stored(3, pairs{}),
		"token is negative":      stored(3, list{1, -1}),
		"token is huge":          stored(3, list{uint64(1 << 32)}),
		"token is an empty list": stored(3, list{list{}}),
		"token is a deep list":   stored(3, list{list{list{1}}}),
		"token is nil":           stored(3, list{nil}),
		"block size is negative": stored(4, -16),
		"adapter is a number":    stored(7, 5),
		"extra keys are a map":   stored(8, pairs{}),
		"extra keys of a block":  stored(8, list{"x", nil}),
		"too few extra keys":     stored(8, list{list{"x"}}),
		"kind is a number":       stored(10, 5),
		"too few copies left":    pairs{"type", "BlockRemoved", "block_hashes", list{1, 2}, "remaining_copy_counts", list{1}},
		"copies left are none":   pairs{"type", "BlockRemoved", "block_hashes", list{1}, "remaining_copy_counts", "x"},
	}
}

func TestDamagedEventLeavesItsNeighboursWhole(t *testing.T) {
	before, after := list{"BlockRemoved", list{1, 2}}, storedArray()
	for what, event := range malformed() {
		b := decode(t, new(kvevent.Decoder), inBatch(pack(before), pack(event), pack(after)))
		if b.Damaged != 1 || len(b.Events) != 2 || !b.HasRank {
			t.Errorf("%s: %d damaged, %d events, rank %v", what, b.Damaged, len(b.Events), b.HasRank)
			continue
		}
		if !strings.Contains(b.Problem, "event 1 ") {
			t.Errorf("%s: the problem is %q", what, b.Problem)
		}
		if want := onlyEvent(t, after); !reflect.DeepEqual(b.Events[1], want) {
			t.Errorf("%s: the next event is %+v, want %+v", what, b.Events[1], want)
		}
		if want := []uint64{1, 2}; !slices.Equal(b.Events[0].Hashes, want) {
			t.Errorf("%s: the event before names %v, want %v", what, b.Events[0].Hashes, want)
		}
	}
}

func TestRestOfACutBatchIsDamaged(t *testing.T) {
	event := pack(storedArray())
	whole := inBatch(event, event, event)
	first := len(inBatch()) - 2 + len(event) // digits up to the second event
	for cut := first; cut < len(whole)-2; cut += 2 {
		b := decode(t, new(kvevent.Decoder), whole[:cut])
		if want := (cut - first) / len(event); len(b.Events) != 1+want || b.Damaged != 2-want {
			t.Fatalf("cut after %d of %d digits: %d events, %d damaged", cut, len(whole), len(b.Events), b.Damaged)
		}
	}
}

func TestWhatIsNoBatchIsRefused(t *testing.T) {
	for what, payload := range map[string]any{
		"nothing": nil, "a number": 5, "a map": pairs{"ts", 1.5}, "an empty list": list{}, "only a time": list{1.5},
		"no time": list{"x", list{}}, "no events": list{1.5, 5},
	} {
		if b, err := new(kvevent.Decoder).Decode(appendAny(nil, payload)); err == nil {
			t.Errorf("%s was taken for %+v", what, b)
		}
	}
	if _, err := new(kvevent.Decoder).Decode(nil); err == nil {
		t.Error("an empty payload was taken")
	}
	if _, err := new(kvevent.Decoder).Decode(make([]byte, kvevent.MaxBatch+1)); err == nil {
		t.Error("an endless payload was taken")
	}
}

func TestBatchesOfAnyShape(t *testing.T) {
	for _, row := range []struct {
		what    string
		payload any
		rank    int
		hasRank bool
	}{
		{"two elements", list{1.5, list{}}, 0, false},
		{"rank 3", list{1.5, list{}, 3}, 3, true},
		{"no rank", list{1.5, list{}, nil}, 0, false},
		{"odd rank", list{1.5, list{}, "x"}, 0, false},
		{"negative rank", list{1.5, list{}, -1}, 0, false},
		{"more elements", list{1.5, list{}, 3, "x", list{5}}, 3, true},
		{"whole seconds", list{2, list{}, 3}, 3, true},
		{"events are nil", list{1.5, nil, 3}, 3, true},
	} {
		b := decode(t, new(kvevent.Decoder), pack(row.payload))
		if b.Rank != row.rank || b.HasRank != row.hasRank || len(b.Events)+b.Damaged != 0 || b.Time < 1.5 {
			t.Errorf("%s: %+v", row.what, b)
		}
	}
}

func TestDecoderKeepsNothingOfTheBatchBefore(t *testing.T) {
	var d kvevent.Decoder
	rich := inBatch(pack(storedArray()), pack(list{"BlockRemoved", list{1}, "CPU", 4}))
	for range 3 {
		decode(t, &d, rich)
		b := decode(t, &d, inBatch(pack(list{"BlockStored", list{3}, nil, list{9}, 1})))
		want := []kvevent.Event{{Group: -1, Stored: kvindex.Stored{Hashes: []uint64{3}, Tokens: []uint32{9}, BlockSize: 1}}}
		if !reflect.DeepEqual(b.Events, want) {
			t.Fatalf("got %+v, want %+v", b.Events, want)
		}
	}
}

// Events lie in one piece of memory; growing it must not spoil those before.
func TestEventsKeepTheirBlocksWhileOthersAreRead(t *testing.T) {
	var events []string
	for i := range 15 {
		event := list{"BlockStored", list{}, nil, list{}, 1}
		for j := range 400 * (i + 1) {
			event[1], event[3] = append(event[1].(list), 1000*i+j), append(event[3].(list), j)
		}
		events = append(events, pack(event))
	}
	b := decode(t, new(kvevent.Decoder), inBatch(events...))
	for i, e := range b.Events {
		if len(e.Stored.Hashes) != 400*(i+1) || len(e.Stored.Tokens) != len(e.Stored.Hashes) {
			t.Fatalf("event %d: %d hashes, %d tokens", i, len(e.Stored.Hashes), len(e.Stored.Tokens))
		}
		for j, h := range e.Stored.Hashes {
			if h != uint64(1000*i+j) || e.Stored.Tokens[j] != uint32(j) {
				t.Fatalf("event %d: block %d is %d with token %d", i, j, h, e.Stored.Tokens[j])
			}
		}
	}
}

func TestProblemNamesTheField(t *testing.T) {
	for field, event := range map[string]any{
		"token_ids": malformed()["token is negative"], "block_hashes": malformed()["no hashes"],
		"extra_keys": malformed()["too few extra keys"], "remaining_copy_counts": malformed()["too few copies left"],
		"tag": malformed()["number"],
	} {
		if b := decode(t, new(kvevent.Decoder), inBatch(pack(event))); !strings.Contains(b.Problem, field) {
			t.Errorf("%s: the problem is %q", field, b.Problem)
		}
	}
	if fmt.Sprint(kvevent.Stored, kvevent.Removed, kvevent.Cleared, kvevent.Kind(9)) != "BlockStored BlockRemoved AllBlocksCleared unknown" {
		t.Error("kinds have other names")
	}
}
