package ledger

import (
	"math"

	"kvca/state/ring"
)

// Best is the cheapest candidate of one owner.
type Best struct {
	Index int // its place in Order.Candidates, -1 where the owner has none
	Score float64
	Equal int // how many of the owner's candidates share the score
	// Next is the least score of the owner's other candidates, +Inf without any.
	Next float64
}

// Survey finds, in one pass, the cheapest candidate of each owner as seen here.
// ownerOf numbers the owner of each slot, 0 for those beyond its end. The result
// is indexed by these numbers and reaches to the highest one among the candidates;
// it takes the place of best, whose memory it uses. Nothing is booked.
func (l *Ledger) Survey(o *Order, ownerOf []uint8, best []Best) []Best {
	l.mu.Lock()
	defer l.mu.Unlock()
	best, tie := best[:0], o.Tie
	for i := range o.Candidates {
		c := &o.Candidates[i]
		owner := ownerNumber(ownerOf, c)
		for int(owner) >= len(best) {
			best = append(best, Best{Index: -1})
		}
		b, score := &best[owner], score(l.views, o, c)
		switch {
		case b.Index < 0:
			*b = Best{i, score, 1, math.Inf(1)}
		case score < b.Score:
			*b = Best{i, score, 1, b.Score}
		case score == b.Score:
			b.Next = score
			b.Equal++
			tie = ring.Mix(tie)
			if tie%uint64(b.Equal) == 0 {
				b.Index = i
			}
		default:
			b.Next = min(b.Next, score)
		}
	}
	return best
}

func ownerNumber(ownerOf []uint8, c *Candidate) uint8 {
	if int(c.Slot) < len(ownerOf) {
		return ownerOf[c.Slot]
	}
	return 0
}

// Score is what candidate i of the order costs as seen here.
func (l *Ledger) Score(o *Order, i int) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return score(l.views, o, &o.Candidates[i])
}
