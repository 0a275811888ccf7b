package ring

import "slices"

// Ring is a set of nodes among which backends are distributed. It is immutable.
type Ring struct {
	names  []string // sorted, each once
	hashes []uint64 // Key of each name
}

// New returns the ring of the named nodes, in whatever order and however often
// each is named.
func New(names []string) *Ring {
	sorted := slices.Clone(names)
	slices.Sort(sorted)
	r := &Ring{names: slices.Compact(sorted)}
	r.hashes = make([]uint64, len(r.names))
	for i, name := range r.names {
		r.hashes[i] = Key(name)
	}
	return r
}

// Owner is the name of the node that owns the backend with this key, "" where
// there is no node.
func (r *Ring) Owner(key uint64) string {
	i := r.Index(key)
	if i < 0 {
		return ""
	}
	return r.names[i]
}

// Index is the owner's place in Names, -1 where there is no node.
func (r *Ring) Index(key uint64) int {
	owner, most := -1, uint64(0)
	for i, hash := range r.hashes {
		if score := Mix(key ^ hash); owner < 0 || score > most {
			owner, most = i, score
		}
	}
	return owner
}

// Names are the nodes, sorted. The caller must not change them.
func (r *Ring) Names() []string { return r.names }
