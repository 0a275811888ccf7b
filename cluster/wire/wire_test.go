package wire

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state/blockmap"
	"kvca/state/ledger"
	"kvca/state/turn"
)

func amount(t *rapid.T, label string) int64 { return rapid.Int64Range(0, math.MaxInt64).Draw(t, label) }

func drawID(t *rapid.T) ledger.ID {
	return ledger.ID{rapid.Uint64().Draw(t, "id"), rapid.Uint64().Draw(t, "id")}
}

func TestReservationsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ask := Ask{ID: drawID(t), Bound: rapid.Float64().Draw(t, "bound"), ActiveBytes: 512, LoadScale: 1, ByRequests: rapid.Bool().Draw(t, "by requests"), Tie: rapid.Uint64().Draw(t, "tie")}
		offers := make([]Offer, rapid.IntRange(0, 9).Draw(t, "offers"))
		b := AppendAsk(nil, &ask, len(offers))
		for i := range offers {
			offers[i] = Offer{Key: rapid.Uint64().Draw(t, "key"), Cost: rapid.Float64().Draw(t, "cost"), Slowness: 1.5, Bypass: amount(t, "bypass"), Novel: amount(t, "novel")}
			b = AppendOffer(b, &offers[i])
		}
		r := NewReader(append(b, "what a later version appends"...))
		got, n := r.Ask()
		if got != ask || n != len(offers) {
			t.Fatalf("sent %+v with %d offers, read %+v with %d", ask, len(offers), got, n)
		}
		for i := range offers {
			if o := r.Offer(); o != offers[i] {
				t.Fatalf("sent %+v, read %+v", offers[i], o)
			}
		}
		if r.Bad() {
			t.Fatal("a whole body reads as malformed")
		}
	})
}

func TestHeldSetsAndChangesComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Hold{ID: drawID(t), Key: rapid.Uint64().Draw(t, "key"), Novel: amount(t, "novel"), Prefilled: rapid.Bool().Draw(t, "prefilled")}
		ids := []ledger.ID{drawID(t), drawID(t)}
		r := NewReader(AppendIDs(AppendHold(AppendHeldSet(nil, FirstPart|LastPart, 1), &h), ids))
		flags, n := r.HeldSet()
		if got := r.Hold(); flags != 3 || n != 1 || got != h {
			t.Fatalf("flags %d, %d holds, %+v", flags, n, got)
		}
		if got := r.IDs(nil); !reflect.DeepEqual(got, ids) || r.Bad() {
			t.Fatalf("ids %v, want %v", got, ids)
		}
		r = NewReader(AppendChange(AppendChange(nil, OpHeld, &h), OpReleased, &h))
		if op, got := r.Change(); op != OpHeld || got != h {
			t.Fatalf("%d %+v", op, got)
		}
		if op, got := r.Change(); op != OpReleased || got.ID != h.ID || r.Rest() != 0 || r.Bad() {
			t.Fatalf("%d %+v", op, got)
		}
	})
}

func TestRunsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Run{
			Key: rapid.Uint64().Draw(t, "key"), Generation: rapid.Uint64().Draw(t, "generation"), Dropped: rapid.Bool().Draw(t, "dropped"),
			Idle:   time.Duration(rapid.Int64Range(0, maxIdle).Draw(t, "idle")) * time.Millisecond,
			Parent: rapid.Uint64().Draw(t, "parent"), Hashes: rapid.SliceOfN(rapid.Uint64(), 1, 40).Draw(t, "hashes"),
		}
		r := NewReader(AppendRun(AppendDelta(nil, 7), &want))
		seq := r.Delta()
		got := Run{Hashes: make([]uint64, 3)}
		r.Run(&got)
		if seq != 7 || r.Bad() || !reflect.DeepEqual(got, want) {
			t.Fatalf("sent %+v, read %+v", want, got)
		}
	})
}

func TestRepairComesAsItWent(t *testing.T) {
	var want, got blockmap.Digest
	for i := range want {
		want[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	r := NewReader(AppendDigest(nil, 3, 70000, &want))
	if round, limit := r.Digest(&got); round != 3 || limit != 70000 || got != want || r.Bad() {
		t.Errorf("round %d, limit %d", round, limit)
	}
	r = NewReader(AppendPageEnd(nil, 4, 5, 6, true))
	if round, buckets, locations, more := r.PageEnd(); round != 4 || buckets != 5 || locations != 6 || !more || r.Bad() {
		t.Errorf("%d %d %d %v", round, buckets, locations, more)
	}
	r = NewReader(AppendPageAck(nil, 4, 1<<40))
	if round, bytes := r.PageAck(); round != 4 || bytes != 1<<40 || r.Bad() {
		t.Errorf("%d %d", round, bytes)
	}
	r = NewReader(AppendAck(nil, 9, 1500*time.Microsecond))
	if seq, held := r.Ack(); seq != 9 || held != 1500*time.Microsecond || r.Bad() {
		t.Errorf("%d %v", seq, held)
	}
}

func TestWhatIsCutOffIsMalformed(t *testing.T) {
	h := Hold{Novel: 1 << 40}
	whole := AppendHold(AppendHeldSet(nil, 0, 1), &h)
	for n := range whole {
		r := NewReader(whole[:n])
		r.HeldSet()
		r.Hold()
		if !r.Bad() {
			t.Errorf("%d of %d bytes read as a whole", n, len(whole))
		}
	}
}

// read takes any body for any kind, as a node does with what a peer sends.
func read(kind byte, body []byte) {
	r := NewReader(body)
	switch kind {
	case Reserve:
		_, n := r.Ask()
		for range n {
			r.Offer()
		}
	case Granted, Refused:
		_, n := r.Answer()
		for range n {
			r.Figure()
		}
	case Changes:
		for r.Rest() > 0 {
			r.Change()
		}
	case HeldSet:
		_, n := r.HeldSet()
		for range n {
			r.Hold()
		}
		r.IDs(nil)
	case Subtotals:
		_, n := r.Subtotals()
		for range n {
			r.Figure()
		}
	case Ages:
		for r.Rest() > 0 {
			r.Age()
		}
	case Delta, Page:
		r.U64()
		var run Run
		for r.Rest() > 0 {
			r.Run(&run)
		}
	case Ack:
		r.Ack()
	case Digest:
		var d blockmap.Digest
		r.Digest(&d)
	case PageAck:
		r.PageAck()
	case PageEnd:
		r.PageEnd()
	case Turn:
		r.Turn()
	case Facts:
		for r.Rest() > 0 {
			r.Bytes()
		}
	}
}

func FuzzRead(f *testing.F) {
	run := Run{Hashes: []uint64{1, 2}}
	f.Add(Delta, AppendRun(AppendDelta(nil, 1), &run))
	f.Add(HeldSet, AppendHold(AppendHeldSet(nil, 0, 1), new(Hold)))
	f.Add(Reserve, AppendOffer(AppendAsk(nil, new(Ask), 1), new(Offer)))
	f.Add(Changes, AppendChange(nil, OpHeld, new(Hold)))
	f.Add(Turn, AppendTurn(nil, &turn.Message{Op: turn.Wait, Pool: "p"}))
	f.Add(Subtotals, []byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(_ *testing.T, kind byte, body []byte) { read(kind, body) })
}
