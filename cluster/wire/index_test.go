package wire

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kvca/state/kvindex"
)

func drawSource(t *rapid.T) SourceID {
	return SourceID{Key: rapid.Uint64().Draw(t, "key"), Rank: rapid.IntRange(0, MaxRank).Draw(t, "rank")}
}

func TestOffersComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := SourceOffer{
			ID: drawSource(t), Live: rapid.Bool().Draw(t, "live"), Gone: rapid.Bool().Draw(t, "gone"),
			Model: rapid.StringN(0, 40, MaxWord).Draw(t, "model"), Problem: rapid.StringN(0, 40, MaxWord).Draw(t, "problem"),
		}
		r := NewReader(append(AppendAgentOffer(nil, "b0", &want), "what a later version appends"...))
		backend, got := r.AgentOffer()
		if backend != "b0" || got != want || r.Bad() {
			t.Fatalf("sent %+v, read %q %+v", want, backend, got)
		}
	})
}

func TestWhatIsTooLongToSayIsCut(t *testing.T) {
	o := SourceOffer{Problem: strings.Repeat("x", 2*MaxWord)}
	r := NewReader(AppendSourceOffer(nil, &o))
	if got := r.SourceOffer(); got.Problem != o.Problem[:MaxWord] || r.Bad() {
		t.Errorf("read %d bytes, malformed %v", len(got.Problem), r.Bad())
	}
}

func TestWantsAndAcksComeAsTheyWent(t *testing.T) {
	id := SourceID{Key: 7, Rank: 3}
	for _, want := range []bool{true, false} {
		r := NewReader(AppendWant(nil, id, want))
		if gotID, got := r.Want(); gotID != id || got != want || r.Bad() {
			t.Errorf("read %v %v", gotID, got)
		}
	}
	r := NewReader(AppendKVAck(nil, id, 1<<60, 9))
	if gotID, epoch, seq := r.KVAck(); gotID != id || epoch != 1<<60 || seq != 9 || r.Bad() {
		t.Errorf("read %v %d %d", gotID, epoch, seq)
	}
}

func drawPart(t *rapid.T) Part {
	flag := func(label string) bool { return rapid.Bool().Draw(t, label) }
	return Part{
		ID: drawSource(t), Epoch: rapid.Uint64().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq"),
		Begin: flag("begin"), Reset: flag("reset"), Last: flag("last"), Ack: flag("ack"),
		BlockSize: rapid.IntRange(0, MaxBlockSize).Draw(t, "block size"),
	}
}

func TestPartsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := drawPart(t)
		b := AppendPart(nil, &part)
		held := make([]kvindex.Held, rapid.IntRange(0, 9).Draw(t, "blocks"))
		for i := range held {
			held[i] = kvindex.Held{Key: rapid.Uint64().Draw(t, "key"), Tiers: uint8(rapid.IntRange(0, allTiers).Draw(t, "tiers"))}
			if held[i].Tiers != 0 {
				held[i].Sample = [2]uint32{rapid.Uint32().Draw(t, "token"), rapid.Uint32().Draw(t, "token")}
			}
			b = AppendHeld(b, &held[i])
		}
		r := NewReader(b)
		if got := r.Part(); got != part {
			t.Fatalf("sent %+v, read %+v", part, got)
		}
		for i := range held {
			if got := r.Held(); got != held[i] {
				t.Fatalf("sent %+v, read %+v", held[i], got)
			}
		}
		if r.Bad() || r.Rest() != 0 {
			t.Fatalf("%d bytes are left, malformed %v", r.Rest(), r.Bad())
		}
	})
}

func drawEvent(t *rapid.T) Event {
	hash := rapid.Uint64()
	e := Event{Removed: rapid.Bool().Draw(t, "removed")}
	e.Stored.Tier = kvindex.Tier(rapid.IntRange(0, kvindex.Tiers-1).Draw(t, "tier"))
	e.Stored.Hashes = rapid.SliceOfN(hash, 0, 9).Draw(t, "hashes")
	if e.Removed {
		return e
	}
	if rapid.Bool().Draw(t, "has parent") {
		e.Stored.HasParent, e.Stored.Parent = true, hash.Draw(t, "parent")
	}
	e.Stored.BlockSize = rapid.IntRange(0, MaxBlockSize).Draw(t, "block size")
	e.Stored.LoRA, e.Stored.Salt = rapid.StringN(0, 9, MaxWord).Draw(t, "lora"), rapid.StringN(0, 9, MaxWord).Draw(t, "salt")
	e.Stored.Tokens = rapid.SliceOfN(rapid.Uint32(), 0, 30).Draw(t, "tokens")
	if rapid.Bool().Draw(t, "has extras") {
		n := len(e.Stored.Hashes)
		e.Stored.Extras = rapid.SliceOfN(hash, n, n).Draw(t, "extras")
	}
	return e
}

func TestEventsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawEvent), 1, 4).Draw(t, "events")
		var b []byte
		for i := range want {
			b = AppendEvent(b, &want[i])
		}
		r := NewReader(b)
		var got Event
		for i := range want {
			r.Event(&got)
			if r.Bad() || !sameEvent(&got, &want[i]) {
				t.Fatalf("sent %+v, read %+v, malformed %v", want[i], got, r.Bad())
			}
		}
		if r.Rest() != 0 {
			t.Fatalf("%d bytes are left", r.Rest())
		}
	})
}

// sameEvent takes no slice for an empty one, but for Extras.
func sameEvent(a, b *Event) bool {
	s, o := &a.Stored, &b.Stored
	lists := slices.Equal(s.Hashes, o.Hashes) && slices.Equal(s.Tokens, o.Tokens) && slices.Equal(s.Extras, o.Extras) && (s.Extras == nil) == (o.Extras == nil)
	return lists && a.Removed == b.Removed && s.HasParent == o.HasParent && s.Parent == o.Parent &&
		s.BlockSize == o.BlockSize && s.Tier == o.Tier && s.LoRA == o.LoRA && s.Salt == o.Salt
}

func TestPartsThatAreCutOffAreMalformed(t *testing.T) {
	part := Part{ID: SourceID{Key: 1, Rank: 300}, Epoch: 2, Seq: 3, BlockSize: 16}
	whole := AppendPart(nil, &part)
	e := Event{Stored: kvindex.Stored{Hashes: []uint64{1, 2}, HasParent: true, Tokens: []uint32{1, 2}, Extras: []uint64{0, 5}}}
	whole = AppendEvent(whole, &e)
	for n := range whole {
		r := NewReader(whole[:n])
		r.Part()
		r.Event(new(Event))
		if !r.Bad() {
			t.Errorf("%d of %d bytes read as a whole", n, len(whole))
		}
	}
}

func TestWildNumbersAreMalformed(t *testing.T) {
	big := AppendSourceID(nil, SourceID{Key: 1, Rank: MaxRank + 1})
	tier := AppendEvent(nil, &Event{Removed: true, Stored: kvindex.Stored{Tier: kvindex.Tiers}})
	extras := AppendEvent(nil, &Event{Stored: kvindex.Stored{Hashes: []uint64{1}, Extras: []uint64{}}})
	counts := []byte{eventRemoved, 0, 0xff, 0xff, 0xff, 0xff, 0x0f}
	for name, read := range map[string]func() Reader{
		"rank":   func() Reader { r := NewReader(big); r.SourceID(); return r },
		"tier":   func() Reader { r := NewReader(tier); r.Event(new(Event)); return r },
		"extras": func() Reader { r := NewReader(extras); r.Event(new(Event)); return r },
		"count":  func() Reader { r := NewReader(counts); r.Event(new(Event)); return r },
	} {
		if r := read(); !r.Bad() {
			t.Errorf("%s: not noticed", name)
		}
	}
}

// readIndex takes any body for any kind of frame about the precise index.
func readIndex(kind byte, body []byte) (allocated int) {
	r := NewReader(body)
	switch kind {
	case KVOffer:
		r.SourceOffer()
	case KVWant:
		r.Want()
	case KVPart:
		for r.Part(); r.Rest() > 0; {
			r.Held()
		}
	case KVAck:
		r.KVAck()
	case AgentOffer:
		r.AgentOffer()
	case AgentPart:
		var e Event
		for r.Part(); r.Rest() > 0; {
			r.Event(&e)
			s := &e.Stored
			allocated = max(allocated, 8*len(s.Hashes)+4*len(s.Tokens)+8*len(s.Extras))
		}
	}
	return allocated
}

func FuzzReadIndex(f *testing.F) {
	part := Part{Begin: true, BlockSize: 16}
	h := kvindex.Held{Key: 1, Tiers: 3, Sample: [2]uint32{5, 70000}}
	e := Event{Stored: kvindex.Stored{Hashes: []uint64{1}, Tokens: []uint32{1, 2}, Extras: []uint64{0}, Salt: "s"}}
	f.Add(KVOffer, AppendSourceOffer(nil, &SourceOffer{Model: "m"}))
	f.Add(KVPart, AppendHeld(AppendPart(nil, &part), &h))
	f.Add(AgentOffer, AppendAgentOffer(nil, "b", new(SourceOffer)))
	f.Add(AgentPart, AppendEvent(AppendPart(nil, &part), &e))
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		if n := readIndex(kind, body); n > 8*len(body) {
			t.Errorf("%d bytes for a body of %d", n, len(body))
		}
	})
}
