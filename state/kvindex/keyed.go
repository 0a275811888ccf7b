package kvindex

import "kvca/state"

// LookupKeys is Lookup for a prompt of so many tokens whose blocks' keys are known
// already, each of blockSize tokens: for sources that are fed by Put with such keys.
func (x *Index) LookupKeys(keys []uint64, blockSize, tokens int, r *Result) {
	v := x.view.Load()
	r.begin(v)
	for i := range v.families {
		f := &v.families[i]
		if f.blockSize != blockSize || f.named != nil {
			continue
		}
		r.size = blockSize
		r.walk.begin(f, len(v.seats))
		for rest := keys[:max(min((tokens-1)/blockSize, len(keys)), 0)]; len(rest) > 0; {
			n := min(len(rest), batch)
			if !x.walkBatch(r, rest[:n]) {
				break
			}
			rest = rest[n:]
		}
		r.walk.end(r)
	}
}

// Forget is Source.Forget for the live source of a backend's rank.
func (x *Index) Forget(s state.Slot, rank int, p *Prompt, fromTokens int) {
	x.mu.Lock()
	var found *Source
	for _, o := range x.numbers.holders {
		if o != nil && o.live && o.origin.Slot == s && o.origin.Rank == rank {
			found = o
		}
	}
	x.mu.Unlock()
	if found != nil {
		found.Forget(p, fromTokens)
	}
}
