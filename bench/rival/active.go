package rival

// active counts which units the requests at each backend use. As every chain is
// counted whole, a backend's units are without gaps.
type active struct {
	*index
	spare [][]int32 // lists that are given back
}

func newActive(backends int) *active { return &active{index: newIndex(backends)} }

// add counts a request. It returns its entries, to remove it by, and how many of
// its units no other uses there. Path must be that of names.
func (a *active) add(names []uint64, backend int) (list []int32, fresh int) {
	if k := len(a.spare); k > 0 {
		list, a.spare = a.spare[k-1][:0], a.spare[:k-1]
	}
	a.extend(names, backend)
	for _, i := range a.path {
		e := a.find(i, backend)
		if e == none {
			e = a.link(i, backend)
			fresh++
		}
		a.entries[e].refs++
		list = append(list, e)
	}
	return list, fresh
}

// remove takes a request out and returns how many units nobody uses there now.
func (a *active) remove(list []int32) (freed int) {
	for _, e := range list {
		if a.entries[e].refs--; a.entries[e].refs == 0 {
			a.unlink(e)
			freed++
		}
	}
	a.spare = append(a.spare, list)
	return freed
}
