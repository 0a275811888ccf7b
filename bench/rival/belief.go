package rival

import "time"

// retention is how long a router believes what it has learned. All of the
// routers here learn when they route, before the engine has computed anything.
type retention struct {
	// units bounds what is believed of one backend, or of all together where
	// common is set; 0 for no bound.
	units  int
	common bool
	ttl    time.Duration // since the last request that had the unit; 0 for ever
	// tailFirst drops the end of a chain before its beginning, as a tree that
	// loses leaves does. Without it a list of hashes loses the beginning first.
	tailFirst bool
	// every is how often the bound is kept: 0 at once.
	every time.Duration
	// forgets is whether a backend that is gone is forgotten.
	forgets bool
}

// pairBound is the most (unit, backend) pairs of one belief that has no bound in
// its router's rules: some 300 MB.
const pairBound = 4 << 20

// belief is what a router takes to be in the engines' caches.
type belief struct {
	*index
	retention
	lists   []list
	pairs   int
	trimmed time.Duration
}

// list is the order of a backend's entries, oldest touch first.
type list struct {
	oldest, newest int32
	size           int
}

func newBelief(backends int, keep retention) *belief {
	b := &belief{index: newIndex(backends), retention: keep, lists: make([]list, backends)}
	for i := range b.lists {
		b.lists[i] = list{oldest: none, newest: none}
	}
	return b
}

// learn makes the backend a holder of all names. Path must be that of names.
func (b *belief) learn(names []uint64, backend int, now time.Duration) {
	b.extend(names, backend)
	for k := range b.path {
		if b.tailFirst {
			k = len(b.path) - 1 - k
		}
		b.touch(b.path[k], backend, now)
	}
	if b.every == 0 {
		b.trim(backend)
	}
}

func (b *belief) touch(i int32, backend int, now time.Duration) {
	e := b.find(i, backend)
	if e == none {
		e = b.link(i, backend)
		b.pairs++
	} else {
		b.cut(e)
	}
	b.entries[e].at = now
	l := b.list(backend)
	b.entries[e].older, b.entries[e].newer = l.newest, none
	if l.newest == none {
		l.oldest = e
	} else {
		b.entries[l.newest].newer = e
	}
	l.newest = e
	l.size++
}

func (b *belief) list(backend int) *list {
	if b.common {
		return &b.lists[0]
	}
	return &b.lists[backend]
}

// cut takes an entry out of its list.
func (b *belief) cut(e int32) {
	n, l := b.entries[e], b.list(int(b.entries[e].backend))
	if n.older == none {
		l.oldest = n.newer
	} else {
		b.entries[n.older].newer = n.newer
	}
	if n.newer == none {
		l.newest = n.older
	} else {
		b.entries[n.newer].older = n.older
	}
	l.size--
}

func (b *belief) drop(e int32) {
	b.cut(e)
	b.unlink(e)
	b.pairs--
}

// age drops what is too old, and keeps the bounds that are kept now and then.
func (b *belief) age(now time.Duration) {
	if b.ttl > 0 {
		for i := range b.lists {
			for e := b.lists[i].oldest; e != none && now-b.entries[e].at > b.ttl; e = b.lists[i].oldest {
				b.drop(e)
			}
		}
	}
	if b.every > 0 && now-b.trimmed >= b.every {
		b.trimmed = now
		for i := range b.lists {
			b.trim(i)
		}
	}
}

// trim keeps the bounds by dropping what was touched least recently: a common
// bound counts units, that of a backend its own.
func (b *belief) trim(backend int) {
	l := b.list(backend)
	for b.units > 0 && l.size > 0 && b.kept(l) > b.units {
		b.drop(l.oldest)
	}
	for b.pairs > pairBound {
		b.drop(b.oldest())
	}
}

// oldest is the entry touched least recently of all.
func (b *belief) oldest() int32 {
	first := int32(none)
	for i := range b.lists {
		if e := b.lists[i].oldest; e != none && (first == none || b.entries[e].at < b.entries[first].at) {
			first = e
		}
	}
	return first
}

func (b *belief) kept(l *list) int {
	if b.common {
		return b.byName.used
	}
	return l.size
}

// forget drops all that is believed of a backend. It must not be a common list's.
func (b *belief) forget(backend int) {
	for l := b.list(backend); l.oldest != none; {
		b.drop(l.oldest)
	}
}
