package member

import (
	"slices"
	"strings"
	"time"
)

// State is what is known of a member's life.
type State uint8

// The states of a member. Alive and Suspect ones are live.
const (
	Alive State = iota
	Suspect
	Left
	Dead
)

var states = [...]string{"alive", "suspect", "left", "dead"}

func (s State) String() string { return states[s] }

// Live tells whether the member counts: a suspect one does until it is dead.
func (s State) Live() bool { return s <= Suspect }

// Member is one node as this one sees it.
type Member struct {
	Name    string
	Address string // of gossip, "ip:port"
	Meta    Meta
	State   State
	Since   time.Time // of State
}

const (
	maxMembers = 256
	remembered = 10 * time.Minute // that a dead or left member is listed, and a dead one called
)

// roster is who is known. It has no clock and no lock of its own.
type roster struct {
	members map[string]*Member
	live    int
	changed bool // since taken
}

// room tells whether name may become live.
func (r *roster) room(name string) bool {
	m := r.members[name]
	return r.live < maxMembers || m != nil && m.State.Live()
}

// joined records a live member, new or returned or with other metadata.
func (r *roster) joined(m Member, now time.Time) {
	old := r.members[m.Name]
	m.State, m.Since = Alive, now
	if old == nil || !old.State.Live() {
		r.live++
	} else if m.Meta.Boot == old.Meta.Boot && m.Address == old.Address {
		m.Since = old.Since
	}
	if r.members == nil {
		r.members = map[string]*Member{}
	}
	r.members[m.Name] = &m
	r.changed = true
	r.trim()
}

// gone records that a member is no longer live: State is Left or Dead.
func (r *roster) gone(name string, s State, now time.Time) {
	m := r.members[name]
	if m == nil {
		return
	}
	if m.State.Live() {
		r.live--
		m.Since = now
		r.changed = true
	}
	m.State = s
}

// departed corrects a member whose farewell came after the news of its end, and tells
// whether it did.
func (r *roster) departed(name string, boot uint64) bool {
	m := r.members[name]
	late := m != nil && m.State == Dead && m.Meta.Boot == boot
	if late {
		m.State = Left
	}
	return late
}

// doubt marks a live member suspect, or takes that back.
func (r *roster) doubt(name string, suspect bool, now time.Time) {
	m := r.members[name]
	if m == nil || !m.State.Live() || (m.State == Suspect) == suspect {
		return
	}
	m.State, m.Since = Alive, now
	if suspect {
		m.State = Suspect
	}
}

// trim forgets the longest gone beyond maxMembers.
func (r *roster) trim() {
	for len(r.members) > maxMembers && len(r.members) > r.live {
		var oldest *Member
		for _, m := range r.members {
			if !m.State.Live() && (oldest == nil || m.Since.Before(oldest.Since)) {
				oldest = m
			}
		}
		delete(r.members, oldest.Name)
	}
}

// expire forgets who has been gone for long.
func (r *roster) expire(now time.Time) {
	for name, m := range r.members {
		if !m.State.Live() && now.Sub(m.Since) > remembered {
			delete(r.members, name)
		}
	}
}

// list gives those that keep wants, by name.
func (r *roster) list(keep func(*Member) bool) []Member {
	all := make([]Member, 0, len(r.members))
	for _, m := range r.members {
		if keep(m) {
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// count is how many are in a state.
func (r *roster) count(s State) (n int) {
	for _, m := range r.members {
		if m.State == s {
			n++
		}
	}
	return n
}

func everyone(*Member) bool  { return true }
func alive(m *Member) bool   { return m.State.Live() }
func missing(m *Member) bool { return m.State == Dead }
