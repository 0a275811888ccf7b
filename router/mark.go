package router

import (
	"kvca/state"
	"kvca/state/blockmap"
	"kvca/state/cbr"
)

// mark is the longest request that this one continues, as far as it is known who
// served it.
type mark struct {
	bytes      int64 // its length, 0 where none is known
	blockBytes int64 // its complete blocks' share of that
	walk       blockmap.Walk
	single     [1]uint64
}

func (m *mark) heldBy(s state.Slot) bool { return m.walk.Matched(s) > 0 }

// findMark looks a follow-up's marks up, the longest first; those inside blocks
// that are known already add nothing. A request without an answer in it continues
// nobody's, even if it repeats one: a short question that many ask is no reason
// to send them all to one backend.
func (q *question) findMark() {
	q.mark.bytes = 0
	if q.req.SkipsCache || q.req.Phase != cbr.FollowUp {
		return
	}
	blockSize := int64(q.router.cfg.BlockSize)
	known := int64(q.walk.Divergence) * blockSize
	for i := len(q.req.Marks) - 1; i >= 0 && q.req.Marks[i].Bytes > known; i-- {
		q.mark.single[0] = q.req.Marks[i].Hash
		q.router.locations.Walk(q.mark.single[:], q.now, &q.mark.walk)
		if q.mark.walk.Divergence > 0 {
			q.mark.bytes = q.req.Marks[i].Bytes
			q.mark.blockBytes = q.mark.bytes / blockSize * blockSize
			return
		}
	}
}

// holds is whether slot s is known to hold the block or mark of that hash.
func (r *Router) holds(s state.Slot, hash uint64) bool {
	q := r.questions.Get().(*question)
	defer r.questions.Put(q)
	q.mark.single[0] = hash
	r.locations.Walk(q.mark.single[:], r.now(), &q.mark.walk)
	return q.mark.walk.Matched(s) > 0
}
