package kvevent_test

import (
	"bytes"
	"encoding/hex"
	"runtime"
	"runtime/debug"
	"testing"

	"kvca/bench/kvencode"
	"kvca/proxy/engine/kvevent"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Counts are announced before what they count; an attacker announces more than
// there is.
func TestAnnouncedCountsAreNotBelieved(t *testing.T) {
	const most = 256 << 10
	for what, payload := range map[string]string{
		"batch of 2^32":          "ddffffffff",
		"events of 2^32":         "93cb3ff8000000000000ddffffffff",
		"map of 2^32":            inBatch("dfffffffff"),
		"hashes of 2^32":         inBatch("92ac" + hex.EncodeToString([]byte("BlockRemoved")) + "ddffffffff"),
		"digest of 2^32 bytes":   inBatch("92ac" + hex.EncodeToString([]byte("BlockRemoved")) + "91c6ffffffff"),
		"tag of 2^32 bytes":      inBatch("91dbffffffff"),
		"tokens of 2^32":         inBatch("94ab" + hex.EncodeToString([]byte("BlockStored")) + "9101ddffffffff"),
		"extension of 2^32":      inBatch("c9ffffffff00"),
		"nested counts of 2^32":  inBatch("92ddffffffffddffffffffddffffffff"),
		"extra keys of 2^32":     inBatch("99ab" + hex.EncodeToString([]byte("BlockStored")) + "9101c09101" + "01c0c0c0" + "ddffffffff"),
		"reserved byte":          inBatch("c1"),
		"cut in a number":        "93cb3ff8000000000000" + "91" + "92ac" + hex.EncodeToString([]byte("BlockRemoved")) + "91cf00",
		"a count cut in half":    "93cb3ff8000000000000dd00",
		"cut in a string's size": inBatch("91da"),
	} {
		raw, err := hex.DecodeString(payload)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := allocated(func() {
			b, err := new(kvevent.Decoder).Decode(raw)
			if err == nil && b.Damaged == 0 {
				t.Errorf("%s was taken: %+v", what, b)
			}
		}); n > most {
			t.Errorf("%s: %d bytes were allocated for %d", what, n, len(raw))
		}
	}
}

func TestDeepNestingCostsNothing(t *testing.T) {
	const depth = 1 << 20
	// A recursion of this depth needs more stack than that, and ends the process.
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	for what, level := range map[string]string{"arrays": "\x91", "maps": "\x81\xa1k", "both": "\x91\x81\xa1k"} {
		deep := append(bytes.Repeat([]byte(level), depth), 0xc0)
		for place, event := range map[string][]byte{
			"event":       deep,
			"unknown key": append([]byte("\x81\xa3new"), deep...),
			"token":       append([]byte("\x94\xabBlockStored\x91\x01\xc0\x91"), deep...),
			"extra key":   append([]byte("\x99\xabBlockStored\x91\x01\xc0\xc0\x01\xc0\xc0\xc0\x91"), deep...),
		} {
			payload := append([]byte("\x93\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\x91"), event...)
			payload = append(payload, 0xc0)
			if n := allocated(func() {
				if _, err := new(kvevent.Decoder).Decode(payload); err != nil {
					t.Errorf("%s as %s: %v", what, place, err)
				}
			}); n > 64<<10 {
				t.Errorf("%s as %s: %d bytes were allocated", what, place, n)
			}
		}
	}
}

// The densest payloads of each kind of memory that there is. About 16 bytes a byte;
// the race detector allocates twice where memory grows.
func TestMemoryIsASmallMultipleOfThePayload(t *testing.T) {
	const n = 1 << 20
	array := func(n int) []byte { return []byte{0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }
	head := []byte("\x92\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00")
	one := append(bytes.Clone(head), 0x91)
	for what, payload := range map[string][]byte{
		"hashes":      append(append(append(bytes.Clone(one), "\x92\xacBlockRemoved"...), array(n)...), make([]byte, n)...),
		"tokens":      append(append(append(bytes.Clone(one), "\x94\xabBlockStored\x90\xc0"...), array(n)...), make([]byte, n)...),
		"events":      append(append(bytes.Clone(head), array(n/17)...), bytes.Repeat([]byte("\x91\xb0AllBlocksCleared"), n/17)...),
		"tiny events": append(append(bytes.Clone(head), array(n)...), bytes.Repeat([]byte{0x90}, n)...),
	} {
		if got := allocated(func() {
			if _, err := new(kvevent.Decoder).Decode(payload); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}); got > 40*uint64(len(payload)) {
			t.Errorf("%s: %d bytes were allocated for %d", what, got, len(payload))
		} else {
			t.Logf("%s: %.1f bytes a byte", what, float64(got)/float64(len(payload)))
		}
	}
}

func TestEventsBeyondTheBoundAreDamaged(t *testing.T) {
	const n = kvevent.MaxEvents + 5
	payload := append([]byte("\x92\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xdd"), byte(n>>24), byte(n>>16&0xff), byte(n>>8&0xff), byte(n&0xff))
	payload = append(payload, bytes.Repeat([]byte("\x91\xa1x"), n)...)
	b, err := new(kvevent.Decoder).Decode(payload)
	if err != nil || b.Skipped != kvevent.MaxEvents || b.Damaged != 5 {
		t.Errorf("%d passed over, %d damaged, error %v", b.Skipped, b.Damaged, err)
	}
}

// batch is what an engine that has just prefilled sends: n events of so many blocks.
func batch(events, blocks int) *kvencode.Batch {
	b := &kvencode.Batch{Time: 1.5, HasRank: true}
	for i := range events {
		e := kvencode.Event{BlockSize: 16, Medium: "GPU", LoRA: "sql", Salt: "tenant", Group: 0, SpecKind: "full_attention"}
		for j := range blocks {
			e.Hashes = append(e.Hashes, uint64(i*blocks+j+1)*0x9e3779b97f4a7c15)
		}
		for j := range 16 * blocks {
			e.Tokens = append(e.Tokens, uint32((i*7919+j*37)%151936))
		}
		b.Events = append(b.Events, e)
	}
	return b
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for what, form := range forms() {
		payload := kvencode.Append(nil, form, batch(20, 30))
		small := kvencode.Append(nil, form, batch(3, 1))
		var d kvevent.Decoder
		if n := testing.AllocsPerRun(20, func() {
			for _, p := range [][]byte{payload, small} {
				if b, err := d.Decode(p); err != nil || b.Damaged > 0 {
					t.Fatal(err, b)
				}
			}
		}); n > 0 {
			t.Errorf("%s: %.0f allocations a batch", what, n)
		}
	}
}

func TestMemoryOfAnUnusualBatchIsGivenBack(t *testing.T) {
	var d kvevent.Decoder
	huge, small := kvencode.Append(nil, kvencode.VLLM(), batch(2, 30_000)), kvencode.Append(nil, kvencode.VLLM(), batch(1, 1))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, p := range [][]byte{huge, small, small} {
		if _, err := d.Decode(p); err != nil {
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d bytes are kept", after-before)
	}
	runtime.KeepAlive(&d)
	runtime.KeepAlive(huge)
}

func forms() map[string]kvencode.Form {
	all := map[string]kvencode.Form{"map": kvencode.VLLM(), "map, digests": kvencode.VLLM().Digests(), "sglang": kvencode.SGLang()}
	for n, name := range map[int]string{6: "array 6", 7: "array 7", 8: "array 8", 9: "array 9", 10: "array 10", 12: "array 12"} {
		all[name] = kvencode.VLLMArray(n)
	}
	return all
}

func BenchmarkDecode(b *testing.B) {
	for _, row := range []struct {
		name           string
		form           kvencode.Form
		events, blocks int
	}{
		{"map/1x512", kvencode.VLLM(), 1, 512},
		{"map/512x1", kvencode.VLLM(), 512, 1},
		{"map/1x1", kvencode.VLLM(), 1, 1},
		{"array/1x512", kvencode.VLLMArray(12), 1, 512},
		{"array/512x1", kvencode.VLLMArray(12), 512, 1},
		{"array/1x1", kvencode.VLLMArray(12), 1, 1},
		{"sglang/512x1", kvencode.SGLang(), 512, 1},
	} {
		b.Run(row.name, func(b *testing.B) {
			payload := kvencode.Append(nil, row.form, batch(row.events, row.blocks))
			var d kvevent.Decoder
			b.ReportAllocs()
			b.SetBytes(int64(len(payload)))
			for b.Loop() {
				if got, err := d.Decode(payload); err != nil || len(got.Events) != row.events {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*row.events), "ns/event")
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, line := range frames(f) {
		raw, err := hex.DecodeString(line.Payload)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	for _, form := range forms() {
		f.Add(kvencode.Append(nil, form, batch(2, 2)))
	}
	for _, event := range malformed() {
		raw, err := hex.DecodeString(inBatch(pack(storedArray()), pack(event)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	var d kvevent.Decoder
	f.Fuzz(func(t *testing.T, payload []byte) {
		before := bytes.Clone(payload)
		b, err := d.Decode(payload)
		if !bytes.Equal(before, payload) {
			t.Fatal("the payload was written to")
		}
		if err != nil {
			return
		}
		if (b.Damaged > 0) != (b.Problem != "") {
			t.Fatalf("%d damaged, problem %q", b.Damaged, b.Problem)
		}
		sum := len(b.Events) + b.Skipped + b.Damaged
		for i := range b.Events {
			e := &b.Events[i]
			sum += len(e.Stored.Hashes) + len(e.Stored.Tokens) + len(e.Hashes) + len(e.Counts)
			if n := len(e.Stored.Extras); n != 0 && n != len(e.Stored.Hashes) {
				t.Fatalf("%d extras for %d blocks", n, len(e.Stored.Hashes))
			}
			if n := len(e.Counts); n != 0 && n != len(e.Hashes) {
				t.Fatalf("%d counts for %d blocks", n, len(e.Hashes))
			}
			if e.Kind > kvevent.Cleared || e.Group < -1 || e.Stored.BlockSize < 0 || (e.Stored.HasParent && e.Stored.Salt != "") {
				t.Fatalf("an event that can't be: %+v", e)
			}
		}
		if sum > len(payload) {
			t.Fatalf("%d things were read from %d bytes", sum, len(payload))
		}
	})
}
