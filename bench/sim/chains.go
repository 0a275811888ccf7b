package sim

import (
	"slices"

	"kvca/bench/trace"
	"kvca/router"
	"kvca/state/cbr"
	"kvca/state/chain"
	"kvca/state/ring"
)

// unitBytes is how many bytes of CBR one name of the trace stands for.
const unitBytes = trace.UnitTokens * trace.BytesPerToken

// maxMarks is how many marks the product's hasher keeps of one request.
const maxMarks = 8

// ask is what the product's router is asked for a request of the trace, in
// blocks of blockSize bytes.
func ask(r *trace.Request, blockSize int) *router.Request {
	phase := cbr.Bootstrap
	if r.FollowUp {
		phase = cbr.FollowUp
	}
	return &router.Request{
		Model: model, Phase: phase, Chain: blocksOf(r.Names, blockSize), Marks: marksOf(r.Marks, blockSize),
		Bytes: int64(r.PromptTokens) * trace.BytesPerToken,
	}
}

// model is the one model that is served.
const model = "m"

// blocksOf names the complete blocks of a prompt. Names of units are chained, so
// the last unit's name stands for a block of several; the parts of a unit are
// named after it and their number. The result has no room to append to, for it
// may be the trace's own.
func blocksOf(names []uint64, blockSize int) []uint64 {
	switch {
	case blockSize == unitBytes:
		return slices.Clip(names)
	case blockSize > unitBytes:
		units := blockSize / unitBytes
		list := make([]uint64, len(names)/units)
		for i := range list {
			list[i] = names[(i+1)*units-1]
		}
		return list
	}
	parts := unitBytes / blockSize
	list := make([]uint64, 0, len(names)*parts)
	for _, name := range names {
		for part := range uint64(parts) {
			list = append(list, ring.Mix(name^ring.Mix(part)))
		}
	}
	return list
}

// marksOf are the last marks of a request, without those at a block's end, where
// the product sets none.
func marksOf(marks []trace.Mark, blockSize int) []chain.Mark {
	var list []chain.Mark
	for _, m := range marks {
		if bytes := m.Tokens * trace.BytesPerToken; bytes%blockSize != 0 {
			list = append(list, chain.Mark{Bytes: int64(bytes), Hash: m.Name})
		}
	}
	return list[max(len(list)-maxMarks, 0):]
}
