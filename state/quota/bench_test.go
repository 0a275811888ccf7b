package quota

import (
	"testing"
	"time"
)

func BenchmarkTakeInHand(b *testing.B) {
	h, l := &Holder{}, Limit{Requests: 1e9, Tokens: 1e12, Concurrent: 1000}
	b.ReportAllocs()
	for now := time.Duration(0); b.Loop(); now += time.Microsecond {
		h.Demand(now, l, 100)
		if !h.Take(now, 100) {
			a := h.Ask(now, 100, Amount{})
			h.Apply(now, &Grant{Seq: a.Seq, Limit: l, Given: Amount{Requests: 1000, Tokens: 100_000, Slots: 1}})
			h.Take(now, 100)
		}
		h.Release(now)
	}
}

func BenchmarkGrant(b *testing.B) {
	o, l := NewOwner(0), Limit{Requests: 1e6, Tokens: 1e9, Concurrent: 1000}
	o.Learned()
	b.ReportAllocs()
	seq := uint64(0)
	for now := time.Second; b.Loop(); now += 100 * time.Microsecond {
		seq++
		o.Grant(now, uint8(seq%8), &Ask{Seq: seq, Limit: l, Need: Amount{Requests: 1, Tokens: 100, Slots: 1}, Want: Amount{Requests: 10, Tokens: 1000, Slots: 1}})
	}
}
