package rival

// active counts which units the requests at each backend use. As every chain is
// counted whole, a backend's units are without gaps.
type active struct{ *index }

func newActive(backends int) *active { return &active{newIndex(backends)} }

// add counts a request and returns how many of its units no other uses there.
func (a *active) add(names []uint64, backend int) (fresh int) {
	a.look(names)
	a.extend(names, backend)
	for _, i := range a.path {
		e := a.find(i, backend)
		if e == none {
			e = a.link(i, backend)
			fresh++
		}
		a.entries[e].refs++
	}
	return fresh
}

// remove takes a request out and returns how many units nobody uses there now.
func (a *active) remove(names []uint64, backend int) (freed int) {
	for _, name := range names {
		e := a.find(a.byName[name], backend)
		if a.entries[e].refs--; a.entries[e].refs == 0 {
			a.unlink(e)
			freed++
		}
	}
	return freed
}
