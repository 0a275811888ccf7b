package kvevent

import (
	"kvca/state/kvindex"
)

// spare is how many elements a scratch slice may always keep.
const spare = 64 << 10

// reuse empties a scratch slice. One that is far larger than what the last batch
// used of it is given up: it has served a batch of unusual size.
func reuse[T any](s []T) []T {
	if cap(s) > spare && len(s) < cap(s)/16 {
		return nil
	}
	return s[:0]
}

// Bounds of the table of strings.
const (
	maxNames     = 4096
	maxNameBytes = 256
	maxMediums   = 64
)

// names are the strings that events carry again and again: adapters, salts, kinds.
type names struct {
	known   map[string]string
	mediums map[string]kvindex.Tier
}

// of is b as a string that may be kept. Long ones are copied each time.
func (n *names) of(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(b) > maxNameBytes {
		return s
	}
	if n.known == nil || len(n.known) >= maxNames {
		n.known = make(map[string]string)
	}
	n.known[s] = s
	return s
}

// tier is the tier of an engine's medium.
func (n *names) tier(medium []byte) kvindex.Tier {
	if t, ok := n.mediums[string(medium)]; ok {
		return t
	}
	t, _ := kvindex.TierOf(string(medium))
	if n.mediums == nil {
		n.mediums = make(map[string]kvindex.Tier)
	}
	if len(n.mediums) < maxMediums && len(medium) <= maxNameBytes {
		n.mediums[string(medium)] = t
	}
	return t
}
