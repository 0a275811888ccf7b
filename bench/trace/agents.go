package trace

import (
	"fmt"
	"time"
)

// chain is how far an agent or a sub-agent has come.
type chain struct {
	after   int           // place of its latest request that was kept, or of its parent's before its first; -1: none
	carried time.Duration // thinks of what was left out since
	records int           // its lines so far
	ended   float64       // when the latest was answered, in s since the chain began
}

// think is what passes before l, its next request, is sent, but never more than most.
func (c *chain) think(l *agentLine, most time.Duration) time.Duration {
	s := max(0, *l.At-c.ended)
	if l.Think != nil {
		s = *l.Think
	}
	return min(c.carried+seconds(s), most)
}

// step notes l. place is where it stands in the session, -1 where it was left out and what follows waits so much longer.
func (c *chain) step(l *agentLine, place int, think time.Duration) {
	c.carried = think
	if place >= 0 {
		c.after, c.carried = place, 0
	}
	c.records++
	c.ended = *l.At
	if l.API != nil {
		c.ended += *l.API
	}
}

type agents struct {
	options  Options
	sessions []Session
	kept     int                 // requests in them
	units    int                 // names in them and in open
	seen     map[string]struct{} // names of sessions

	name   string // of the session that is being read
	open   []Request
	chains map[string]*chain
}

func newAgents(o Options) *agents { return &agents{options: o, seen: map[string]struct{}{}} }

func (a *agents) line(b []byte) (done bool, err error) {
	l, err := parseAgentLine(b)
	if err != nil {
		return false, err
	}
	if root := l.root(); root != a.name {
		if !a.close() {
			return true, nil
		}
		if _, again := a.seen[root]; again {
			return false, fmt.Errorf("s: want the lines of a session together, came %q again after others", root)
		}
		a.seen[root] = struct{}{}
		a.name, a.chains = root, map[string]*chain{}
	}
	if l.Meta != 0 {
		return false, nil
	}
	return false, a.request(l)
}

func (a *agents) request(l *agentLine) error {
	c := a.chain(l)
	think, place := c.think(l, a.options.MaxThink), -1
	if *l.Input+*l.Output <= a.options.MaxTokens {
		if a.units += *l.Input / UnitTokens; a.units > maxUnits {
			return errTooLarge
		}
		place = len(a.open)
		a.open = append(a.open, Request{
			After: c.after, Think: think, PromptTokens: *l.Input, OutputTokens: max(*l.Output, 1),
			Names: l.names(), FollowUp: c.records > 0,
		})
	}
	c.step(l, place, think)
	return nil
}

// chain is l's. A new one begins where its parent is, which is how the file says what spawned it.
func (a *agents) chain(l *agentLine) *chain {
	c := a.chains[l.Chain]
	if c == nil {
		c = &chain{after: -1}
		if parent := a.chains[l.parent()]; parent != nil {
			c.after, c.carried = parent.after, parent.carried
		}
		a.chains[l.Chain] = c
	}
	return c
}

// close ends the session that is being read. It tells whether there is room for more.
func (a *agents) close() bool {
	if a.options.Limit > 0 && a.kept+len(a.open) > a.options.Limit {
		a.open = nil
		return false
	}
	if len(a.open) > 0 {
		a.sessions = append(a.sessions, Session{Requests: a.open})
		a.kept += len(a.open)
	}
	a.open = nil
	return true
}

func (a *agents) end() (*Trace, error) {
	a.close()
	if len(a.sessions) == 0 {
		return nil, errNothing
	}
	return &Trace{Sessions: a.sessions, Lanes: a.options.Lanes}, nil
}
