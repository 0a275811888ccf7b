package ledger

import "kvca/state/ring"

// forgetAfter is how many releases one generation remembers: 32,768 ids of 16
// bytes, twice, are about 2 MiB in Go's maps.
const forgetAfter = 1 << 15

// recent remembers the last released ids, each for its holder: at least
// forgetAfter of them, at most twice as many.
type recent struct {
	young, old map[ID]struct{}
}

// of sets the ids of one holder apart from another's, so that a holder's release
// keeps nobody else from booking.
func (id ID) of(h Holder) ID { return ID{id[0], id[1] ^ ring.Mix(uint64(h))} }

func newRecent() recent { return recent{young: make(map[ID]struct{})} }

func (r *recent) add(id ID) {
	if len(r.young) >= forgetAfter {
		spare := r.old
		clear(spare)
		if spare == nil {
			spare = make(map[ID]struct{}, forgetAfter)
		}
		r.young, r.old = spare, r.young
	}
	r.young[id] = struct{}{}
}

func (r *recent) has(id ID) bool {
	if _, ok := r.young[id]; ok {
		return true
	}
	_, ok := r.old[id]
	return ok
}
