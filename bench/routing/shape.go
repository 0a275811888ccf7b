package routing

import (
	"math/rand/v2"
	"slices"

	"kvca/router"
	"kvca/state/cbr"
)

// Shape is one kind of request.
type Shape int

// The kinds of requests.
const (
	Cold Shape = iota
	FollowUp
	Hot
)

// Shapes are all kinds.
var Shapes = []Shape{Cold, FollowUp, Hot}

// String is the shape's name in tables.
func (s Shape) String() string {
	return [...]string{"cold", "follow-up", "hot prefix on every backend"}[s]
}

// novelBlocks is what a follow-up adds to its conversation.
const novelBlocks = 2

// request makes the next request of a shape.
func (f *Fleet) request(s Shape, r *rand.Rand) *router.Request {
	req := &router.Request{Model: "m", Phase: cbr.FollowUp, Bytes: int64(f.cfg.Chain * f.router.BlockSize())}
	switch s {
	case Cold:
		req.Phase = cbr.Bootstrap
		req.Chain = hashes(r, f.cfg.Chain)
	case FollowUp:
		known := f.chains[r.IntN(len(f.chains))]
		req.Chain = append(slices.Clone(known[:f.cfg.Chain-novelBlocks]), hashes(r, novelBlocks)...)
	case Hot:
		req.Chain = append(slices.Clone(f.hot), hashes(r, f.cfg.Chain-len(f.hot))...)
	}
	return req
}
