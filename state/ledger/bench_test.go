package ledger

import (
	"fmt"
	"math"
	"testing"

	"kvca/state"
	"kvca/state/ring"
)

func manyCandidates(n int) *Order {
	o := order(0)
	for s := range n {
		o.Candidates = append(o.Candidates, Candidate{Slot: state.Slot(s), Slowness: 1, Novel: 1000})
	}
	return o
}

func BenchmarkReserveForPeer(b *testing.B) {
	for _, n := range []int{8, 64, 1000} {
		b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) {
			l, o := New(), manyCandidates(n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				o.ID, o.Tie = ID{uint64(i), 2}, uint64(i)
				l.ReserveFor(1, o, math.Inf(1))
				l.PrefilledFor(1, o.ID)
				l.ReleaseFor(1, o.ID)
			}
		})
	}
}

func BenchmarkSurvey(b *testing.B) {
	for _, n := range []int{8, 64, 1000, 4000} {
		b.Run(fmt.Sprintf("candidates=%d", n), func(b *testing.B) {
			l, o, ownerOf := New(), manyCandidates(n), make([]uint8, n)
			for s := range ownerOf {
				ownerOf[s] = uint8(ring.Mix(uint64(s)) % 8)
			}
			var best []Best
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				o.Tie = uint64(i)
				best = l.Survey(o, ownerOf, best)
			}
		})
	}
}

// A peer's full set is told every two seconds, and most of it is known.
func BenchmarkReassert(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		held := make([]Held, n)
		for i := range held {
			held[i] = Held{ID: ID{ring.Mix(uint64(i)), 1}, Slot: state.Slot(i % 256), Novel: 1000}
		}
		b.Run(fmt.Sprintf("Replace/holds=%d", n), func(b *testing.B) {
			l := New()
			b.ReportAllocs()
			for b.Loop() {
				l.Replace(1, held, nil)
			}
		})
		b.Run(fmt.Sprintf("Holds/holds=%d", n), func(b *testing.B) {
			l, list := New(), []Held(nil)
			l.Replace(1, held, nil)
			b.ReportAllocs()
			for b.Loop() {
				list = l.Holds(1, list[:0], nil)
			}
		})
	}
}
