package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	mooncakeBlock = 512                        // tokens that one hash id stands for
	blockUnits    = mooncakeBlock / UnitTokens // units in it
	quantum       = 3000 * time.Millisecond    // of the published timestamps
	mooncakeWant  = `want {"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [id of each 512 tokens]}`
)

// mooncakeLine is one request. Pointers tell what is missing.
type mooncakeLine struct {
	Timestamp *float64 `json:"timestamp"`
	Input     *int     `json:"input_length"`
	Output    *int     `json:"output_length"`
	IDs       []uint64 `json:"hash_ids"`
}

func parseMooncake(b []byte) (*mooncakeLine, error) {
	l := new(mooncakeLine)
	if err := json.Unmarshal(b, l); err != nil {
		return nil, fmt.Errorf("%s: %w", mooncakeWant, err)
	}
	if err := checkTime("timestamp", l.Timestamp, time.Millisecond); err != nil {
		return nil, err
	}
	if err := checkInt("input_length", l.Input, 1, maxLength); err != nil {
		return nil, err
	}
	if err := checkInt("output_length", l.Output, 0, maxLength); err != nil {
		return nil, err
	}
	if want := (*l.Input + mooncakeBlock - 1) / mooncakeBlock; len(l.IDs) != want {
		return nil, fmt.Errorf("hash_ids: want %d for input_length %d, came %d", want, *l.Input, len(l.IDs))
	}
	return l, nil
}

// names splits each id, which names its block together with all before it, into units.
func (l *mooncakeLine) names() []uint64 {
	names := make([]uint64, *l.Input/UnitTokens)
	for i := range names {
		names[i] = mix(l.IDs[i/blockUnits], uint64(i%blockUnits))
	}
	return names
}

type mooncake struct {
	options  Options
	sessions []Session
	units    int
	latest   time.Duration
	second   map[uint64]struct{} // second ids that have come
}

func newMooncake(o Options) *mooncake {
	return &mooncake{options: o, second: map[uint64]struct{}{}}
}

func (m *mooncake) line(b []byte) (done bool, err error) {
	l, err := parseMooncake(b)
	if err != nil {
		return false, err
	}
	at := seconds(*l.Timestamp / 1000)
	if at < m.latest {
		return false, fmt.Errorf("timestamp: want %d ms or later, as the line before has, came %d", m.latest.Milliseconds(), at.Milliseconds())
	}
	m.latest = at
	followUp := m.followUp(l.IDs)
	if *l.Input+*l.Output > m.options.MaxTokens {
		return false, nil
	}
	if m.units += *l.Input / UnitTokens; m.units > maxUnits {
		return false, errTooLarge
	}
	m.sessions = append(m.sessions, Session{Start: at, Requests: []Request{{
		After: -1, PromptTokens: *l.Input, OutputTokens: max(*l.Output, 1), Names: l.names(), FollowUp: followUp,
	}}})
	return len(m.sessions) == m.options.Limit, nil
}

// followUp tells whether a request has its second block from an earlier one, and remembers it.
func (m *mooncake) followUp(ids []uint64) bool {
	if len(ids) < 2 {
		return false
	}
	_, seen := m.second[ids[1]]
	m.second[ids[1]] = struct{}{}
	return seen
}

func (m *mooncake) end() (*Trace, error) {
	if len(m.sessions) == 0 {
		return nil, errNothing
	}
	spread(m.sessions, rand.New(rand.NewPCG(m.options.Seed, 1)))
	slices.SortStableFunc(m.sessions, func(a, b Session) int { return cmp.Compare(a.Start, b.Start) })
	return &Trace{Sessions: m.sessions}, nil
}

// spread has the sessions of one Start begin at any time until the next Start, a quantum at most.
func spread(sessions []Session, r *rand.Rand) {
	for len(sessions) > 0 {
		start, width, n := sessions[0].Start, quantum, len(sessions)
		if i := slices.IndexFunc(sessions, func(s Session) bool { return s.Start > start }); i > 0 {
			width, n = min(width, sessions[i].Start-start), i
		}
		for i := range n {
			sessions[i].Start += time.Duration(r.Int64N(int64(width)))
		}
		sessions = sessions[n:]
	}
}
