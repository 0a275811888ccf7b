package cbr

import "bytes"

// shape is a kind of object that engines read into a fixed model, so that the
// order of its members, a null and the spelling of its numbers mean nothing.
type shape uint8

const (
	topLevel shape = iota // the body's own object
	message               // of chat and messages
	item                  // of a responses input
	part                  // of a content list
)

// fixed is the state of reading one such object.
type fixed struct {
	shape   shape
	base    int  // of its members among the encoder's
	settled bool // so far the members are in order, each once, and all count
}

// open enters the object at hand.
func (e *Encoder) open(s shape) (f fixed, more, ok bool) {
	f = fixed{shape: s, base: len(e.members), settled: true}
	more, ok = e.enter('}')
	return f, more, ok
}

// add takes in the member just read, the last one of the encoder's list. One that
// is absent goes at once, unless there may be one before that it overrides.
func (e *Encoder) add(f *fixed, at int) {
	m := *e.endMember(at)
	if e.absent(f.shape, m) {
		if !e.mayOverride(f, at) {
			e.members, e.out = e.members[:at], e.out[:m.key]
			return
		}
		f.settled = false
	}
	if at > f.base && f.shape.compare(e.keyOf(e.members[at-1]), e.keyOf(m)) >= 0 {
		f.settled = false
	}
}

// fewMembers is how many members are worth comparing a key with. In an object
// that has more, it is left to sorting to find those that repeat.
const fewMembers = 16

func (e *Encoder) mayOverride(f *fixed, at int) bool {
	if at-f.base > fewMembers {
		return true
	}
	key := e.keyOf(e.members[at])
	for _, m := range e.members[f.base:at] {
		if bytes.Equal(e.keyOf(m), key) {
			return true
		}
	}
	return false
}

// absent reports whether a member means the same as none at all.
func (e *Encoder) absent(s shape, m member) bool {
	if e.out[m.value] == tagNull {
		return true
	}
	switch s {
	case part:
		return steersCache(e.keyOf(m))
	case item:
		return string(e.keyOf(m)) == "type" && isText(e.valueOf(m), "message")
	}
	return false
}

// steersCache reports whether a member of a content part steers a provider's
// prompt cache. It reaches no template, but clients move it to the newest message
// with every turn: taken in, it would change a prefix that the engine sees
// unchanged.
func steersCache(key []byte) bool {
	return string(key) == "cache_control" || string(key) == "prompt_cache_breakpoint"
}

// compare orders keys by rank, then by their bytes.
func (s shape) compare(a, b []byte) int {
	if c := s.rank(a) - s.rank(b); c != 0 {
		return c
	}
	return bytes.Compare(a, b)
}

// rank is 0 to 3, the order of keys before that of their bytes. Below the top
// level a role, a type and the ID of a call come first, where clients write them:
// most objects are in order as they arrive.
func (s shape) rank(key []byte) int {
	if s == topLevel {
		return 0
	}
	switch string(key) {
	case "role":
		return 0
	case "type":
		return 1
	case "tool_call_id", "tool_use_id":
		return 2
	}
	return 3
}

// settle brings the object's members into order, each once, without the absent.
// They stay in the encoder's list from f.base on, for the caller to look at and
// to remove.
func (e *Encoder) settle(f *fixed) {
	if f.settled {
		return
	}
	e.rewrite(f.base, e.counted(f))
}

// counted are the object's members that count, in order, by their last place.
func (e *Encoder) counted(f *fixed) []run {
	runs := e.runsOf(f.base, f.shape)
	counted := runs[:0]
	for _, r := range runs {
		if !e.absent(f.shape, e.members[r.last]) {
			counted = append(counted, run{first: r.last, last: r.last})
		}
	}
	return counted
}

// find is the encoded value of a settled object's member, nil if it has none.
func (e *Encoder) find(f *fixed, name string) []byte {
	for _, m := range e.members[f.base:] {
		if string(e.keyOf(m)) == name {
			return e.valueOf(m)
		}
	}
	return nil
}
