package router

import (
	"kvca/state"
	"kvca/state/blockmap"
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

// findMark looks the request's marks up, the longest first. Those inside blocks
// that are known to everyone concerned add nothing, so most requests need none.
func (q *question) findMark() {
	q.mark.bytes = 0
	if q.req.SkipsCache {
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
