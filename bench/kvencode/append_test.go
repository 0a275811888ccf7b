package kvencode

import (
	"encoding/hex"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"kvca/proxy/engine/kvevent"
	"kvca/state/kvindex"
)

var mediums = map[string]kvindex.Tier{"": kvindex.GPU, "GPU": kvindex.GPU, "CPU": kvindex.CPU, "CPU_PINNED": kvindex.CPU, "STORAGE": kvindex.SSD, "EXTERNAL": kvindex.Remote}

func drawEvent(t *rapid.T) Event {
	hash, text := rapid.Uint64(), rapid.StringN(1, 12, 40)
	maybe := rapid.OneOf(rapid.Just(""), text)
	e := Event{
		Kind:   rapid.SampledFrom([]kvevent.Kind{kvevent.Stored, kvevent.Removed, kvevent.Cleared}).Draw(t, "kind"),
		Medium: rapid.SampledFrom([]string{"", "GPU", "CPU", "CPU_PINNED", "STORAGE", "EXTERNAL"}).Draw(t, "medium"),
		Group:  rapid.IntRange(-1, 9).Draw(t, "group"), Remote: rapid.Bool().Draw(t, "remote"),
	}
	if e.Kind == kvevent.Cleared {
		return Event{Kind: e.Kind, Group: -1}
	}
	e.Hashes = rapid.SliceOfN(hash, 1, 6).Draw(t, "hashes")
	if e.Kind == kvevent.Removed {
		if rapid.Bool().Draw(t, "counted") {
			e.Counts = rapid.SliceOfN(rapid.IntRange(0, 300), len(e.Hashes), len(e.Hashes)).Draw(t, "copies left")
		}
		return e
	}
	e.BlockSize = rapid.IntRange(1, 40).Draw(t, "block size")
	n := e.BlockSize * len(e.Hashes)
	e.Tokens = rapid.SliceOfN(rapid.Uint32(), n, n).Draw(t, "tokens")
	e.LoRA, e.SpecKind = maybe.Draw(t, "adapter"), rapid.SampledFrom([]string{"", "full_attention", "mamba"}).Draw(t, "kind of attention")
	if e.HasParent = rapid.Bool().Draw(t, "has a parent"); e.HasParent {
		e.Parent = hash.Draw(t, "parent")
	} else {
		e.Salt = maybe.Draw(t, "salt")
	}
	for block := range e.Hashes {
		for range rapid.IntRange(0, 2).Draw(t, "media") {
			e.Media = append(e.Media, Media{Block: block, ID: text.Draw(t, "id"), Offset: rapid.Int64Range(-5000, 5000).Draw(t, "offset")})
		}
	}
	return e
}

// seen is what is left of an event in a form.
func (f Form) seen(e *Event) kvevent.Event {
	release := f.stored
	if f.style == asMap {
		release = 13
	}
	out := kvevent.Event{Kind: e.Kind, Group: -1, Remote: e.Remote && release > 12}
	if release > 6 {
		out.Tier = mediums[e.Medium]
	}
	if release > 9 {
		out.Group = e.Group
	}
	switch e.Kind {
	case kvevent.Removed:
		out.Hashes = e.Hashes
		if release > 12 {
			out.Counts = e.Counts
		}
	case kvevent.Stored:
		if release > 10 {
			out.SpecKind = e.SpecKind
		}
		out.Stored = kvindex.Stored{Hashes: e.Hashes, Parent: e.Parent, HasParent: e.HasParent, Tokens: e.Tokens, BlockSize: e.BlockSize, Tier: out.Tier}
		switch {
		case release > 7:
			out.Stored.LoRA = e.LoRA
		case e.LoRA != "" && f.style == asArray:
			out.Stored.LoRA = "\x00lora_id 1" // only the number is written
		}
		if release > 8 || f.style == asSGLang {
			out.Stored.Salt = e.Salt
		}
		if release > 8 && len(e.Media) > 0 {
			out.Stored.Extras = make([]uint64, len(e.Hashes))
			for _, m := range e.Media {
				out.Stored.Extras[m.Block] = kvindex.MixExtra(out.Stored.Extras[m.Block], m.ID, m.Offset)
			}
		}
	}
	return out
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	var d kvevent.Decoder // one for all: nothing of one batch may be seen in the next
	forms := []Form{VLLM(), VLLMArray(6), VLLMArray(7), VLLMArray(8), VLLMArray(9), VLLMArray(10), VLLMArray(12), SGLang()}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(forms).Draw(t, "form")
		if rapid.Bool().Draw(t, "digests") {
			f = f.Digests()
		}
		b := Batch{Time: rapid.Float64().Draw(t, "time"), Events: rapid.SliceOfN(rapid.Custom(drawEvent), 0, 5).Draw(t, "events")}
		if b.HasRank = rapid.Bool().Draw(t, "has a rank"); b.HasRank {
			b.Rank = rapid.IntRange(0, 200).Draw(t, "rank")
		}
		got, err := d.Decode(Append([]byte("before")[6:], f, &b))
		if err != nil {
			t.Fatal(err)
		}
		if got.Time != b.Time || got.Rank != b.Rank || got.HasRank != b.HasRank || got.Damaged+got.Skipped != 0 || len(got.Events) != len(b.Events) {
			t.Fatalf("got %+v of %+v", got, b)
		}
		for i := range b.Events {
			if want := f.seen(&b.Events[i]); !reflect.DeepEqual(got.Events[i], want) {
				t.Fatalf("event %d: got %+v, want %+v", i, got.Events[i], want)
			}
		}
	})
}

// What the engines' own encoders write for the same events.
func TestBytesAreTheEngines(t *testing.T) {
	stored := Event{Hashes: []uint64{1}, Tokens: []uint32{10, 11}, BlockSize: 2, Medium: "GPU", SpecKind: "full_attention"}
	mixed := stored
	mixed.Salt, mixed.Media = "s", []Media{{ID: "mm", Offset: -3}}
	salted := Event{Hashes: []uint64{^uint64(4)}, Tokens: []uint32{10, 11}, BlockSize: 2, Medium: "GPU", Salt: "s1", Group: -1}
	removed := Event{Kind: kvevent.Removed, Hashes: []uint64{1}, Medium: "GPU"}
	for _, row := range []struct {
		what, want string
		form       Form
		event      Event
	}{
		{"v0.23", "9cab426c6f636b53746f7265649101c0920a0b02c0a3475055c091c000ae66756c6c5f617474656e74696f6ec0", VLLMArray(12), stored},
		{"v0.23 removed", "94ac426c6f636b52656d6f7665649101a347505500", VLLMArray(12), removed},
		{"v0.24", "8ba474797065ab426c6f636b53746f726564ac626c6f636b5f6861736865739101b1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f696473920a0baa626c6f636b5f73697a6502a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b6579739192" + "92a26d6dfd" + "a173" + "a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e", VLLM(), mixed},
		{"v0.24 removed", "84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f6861736865739101a66d656469756da3475055a967726f75705f69647800", VLLM(), removed},
		{"v0.24 cleared", "81a474797065b0416c6c426c6f636b73436c6561726564", VLLM(), Event{Kind: kvevent.Cleared}},
		{"SGLang", "98ab426c6f636b53746f72656491fbc0920a0b02c0a347505581aa63616368655f73616c74a27331", SGLang(), salted},
	} {
		got := hex.EncodeToString(Append(nil, row.form, &Batch{Time: 1.5, HasRank: true, Events: []Event{row.event}}))
		if want := "93cb3ff800000000000091" + row.want + "00"; got != want {
			t.Errorf("%s:\n got %s\nwant %s", row.what, got, want)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	b := Batch{Events: []Event{{Hashes: []uint64{1, 2}, Tokens: make([]uint32, 32), BlockSize: 16, Salt: "s", LoRA: "l", Media: []Media{{ID: "m"}}}}}
	dst := make([]byte, 0, 1<<12)
	for _, f := range []Form{VLLM(), VLLM().Digests(), VLLMArray(12), SGLang()} {
		if n := testing.AllocsPerRun(50, func() { dst = Append(dst[:0], f, &b) }); n > 0 {
			t.Errorf("%+v: %.0f allocations", f, n)
		}
	}
}
