package feed

import (
	"testing"

	"kvca/bench/kvencode"
	"kvca/state/kvindex"
)

// discard is a sink that costs nothing.
type discard struct{}

func (discard) Store(*kvindex.Stored) error       { return nil }
func (discard) Remove([]uint64, kvindex.Tier) int { return 0 }
func (discard) Reset()                            {}
func (discard) SetLive(bool)                      {}

// BenchmarkBatch takes a batch of one request's prefill, 64 blocks of 16 tokens and
// as many evictions, from the socket's frames to the sink.
func BenchmarkBatch(b *testing.B) {
	e := kvencode.Event{Kind: 0, BlockSize: 16, Medium: "GPU", SpecKind: "full_attention"}
	list := []kvencode.Event{}
	for i := range uint64(64) {
		e.Hashes = append(e.Hashes, i<<40)
		list = append(list, removed(i<<41))
	}
	e.Tokens = make([]uint32, 64*16)
	body := payload(append(list, e)...)

	f, err := New(Config{Endpoint: "tcp://engine:5557", Sink: discard{}})
	if err != nil {
		b.Fatal(err)
	}
	w := newWorker(b.Context(), f)
	f.listener.Connected(nil)
	frame := [][]byte{nil, make([]byte, 8), body}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for i := range b.N {
		number(frame[1], uint64(i))
		f.listener.Message(nil, frame)
		w.turn(b.Context())
	}
	b.ReportMetric(float64(65*b.N)/b.Elapsed().Seconds(), "events/s")
	if w.machine.counts.batches != uint64(b.N) {
		b.Fatalf("%d of %d batches were taken", w.machine.counts.batches, b.N)
	}
}

func number(frame []byte, seq uint64) {
	for i := range 8 {
		frame[i] = byte(seq >> (56 - 8*i))
	}
}
