package wire

import (
	"encoding/binary"

	"kvca/state/ledger"
)

// Ask is a Reserve frame without its candidates.
type Ask struct {
	ID ledger.ID
	// Bound is the score above which the owner is to refuse.
	Bound       float64
	ActiveBytes float64
	LoadScale   float64
	ByRequests  bool
	Tie         uint64
}

// Offer is one candidate of a Reserve frame.
type Offer struct {
	Key      uint64
	Cost     float64
	Slowness float64
	Bypass   int64
	Novel    int64
}

// offerBytes is the least that an offer takes.
const offerBytes = 8 + 8 + 8 + 1 + 1

// AppendAsk appends a Reserve frame's body up to its candidates, n of them.
func AppendAsk(b []byte, a *Ask, n int) []byte {
	b = appendID(b, a.ID)
	b = appendF64(b, a.Bound)
	b = appendF64(b, a.ActiveBytes)
	b = appendF64(b, a.LoadScale)
	flags := byte(0)
	if a.ByRequests {
		flags = 1
	}
	b = append(b, flags)
	b = appendU64(b, a.Tie)
	return binary.AppendUvarint(b, uint64(n))
}

// AppendOffer appends one candidate.
func AppendOffer(b []byte, o *Offer) []byte {
	b = appendU64(b, o.Key)
	b = appendF64(b, o.Cost)
	b = appendF64(b, o.Slowness)
	b = appendAmount(b, o.Bypass)
	return appendAmount(b, o.Novel)
}

// Ask reads a Reserve frame up to its candidates, and how many follow.
func (r *Reader) Ask() (a Ask, n int) {
	a.ID = r.ID()
	a.Bound, a.ActiveBytes, a.LoadScale = r.F64(), r.F64(), r.F64()
	a.ByRequests = r.U8()&1 != 0
	a.Tie = r.U64()
	return a, r.Count(offerBytes)
}

// Offer reads one candidate.
func (r *Reader) Offer() Offer {
	return Offer{Key: r.U64(), Cost: r.F64(), Slowness: r.F64(), Bypass: r.Amount(), Novel: r.Amount()}
}

// Refusal says why an owner booked nothing.
type Refusal byte

// The refusals.
const (
	// AboveBound: the least score there is above the bound.
	AboveBound Refusal = iota
	// NotOwner: the node asked owns none of the candidates in its view.
	NotOwner
	// Released: the id was released before, or the ledger is full.
	Released
)

// Answer is a Granted or a Refused frame without its figures.
type Answer struct {
	ID ledger.ID
	// Key is the chosen backend; of a refusal, the cheapest.
	Key   uint64
	Score float64
	// Refusal matters in a Refused frame.
	Refusal Refusal
}

// Figure is what others than the asking node hold on a backend.
type Figure struct {
	Key  uint64
	Load ledger.Load
}

// AppendAnswer appends a Granted or Refused frame's body up to its n figures.
func AppendAnswer(b []byte, a *Answer, n int) []byte {
	b = appendID(b, a.ID)
	b = appendU64(b, a.Key)
	b = appendF64(b, a.Score)
	b = append(b, byte(a.Refusal))
	return binary.AppendUvarint(b, uint64(n))
}

// Answer reads a Granted or Refused frame up to its figures, and how many follow.
func (r *Reader) Answer() (a Answer, n int) {
	a = Answer{ID: r.ID(), Key: r.U64(), Score: r.F64(), Refusal: Refusal(r.U8())}
	return a, r.Count(figureBytes)
}

const figureBytes = 8 + 1 + 1

// AppendFigure appends a figure; Subtotals frames consist of them too.
func AppendFigure(b []byte, f *Figure) []byte {
	b = appendU64(b, f.Key)
	b = appendAmount(b, f.Load.Novel)
	return appendAmount(b, f.Load.Active)
}

// Figure reads a figure.
func (r *Reader) Figure() Figure {
	return Figure{Key: r.U64(), Load: ledger.Load{Novel: r.Amount(), Active: r.Amount()}}
}
