package rival

import "time"

// Ticket is one routed request. Each step is taken at most once.
type Ticket struct {
	// Backend is where the request goes, -1 for nowhere.
	Backend int

	fleet   *Fleet
	gateway int
	used    []int32 // its units at the backend
	load    load    // what is still booked
	partial int     // units beyond names that it uses
	tracked bool
	begun   bool
	over    bool
}

// book enters the request into the gateway's books and counts its units.
func (t *Ticket) book(r *Request, now time.Duration) {
	f := t.fleet
	q := &f.question
	t.load = load{requests: 1, prompt: r.PromptTokens, prefill: r.PromptTokens}
	switch {
	case f.design.exact:
		t.load.prefill = q.novel(t.Backend)
	case f.design.counts != trunk:
		t.load.prefill = q.unmatched(t.Backend)
	}
	if a := f.gateways[t.gateway].active; a != nil {
		t.tracked = true
		t.partial = (r.PromptTokens+q.unit-1)/q.unit - len(r.Names)
		used, fresh := a.add(r.Names, t.Backend)
		t.used, t.load.blocks = used, fresh+t.partial
	}
	f.books.book(t.gateway, t.Backend, t.load, now)
}

// Begin records that the first token has come.
func (t *Ticket) Begin(now time.Duration) {
	if t.begun || t.over {
		return
	}
	t.begun = true
	back := load{prefill: -t.load.prefill}
	if t.fleet.design.tracks == untilCome {
		back.blocks = t.untrack()
	}
	t.settle(back, now)
}

// End records that the request is over, answered whole or failed.
func (t *Ticket) End(now time.Duration) {
	if t.over {
		return
	}
	t.over = true
	back := load{requests: -1, prompt: -t.load.prompt, prefill: -t.load.prefill, blocks: t.untrack()}
	t.settle(back, now)
}

// untrack stops counting the request's units and returns the change of the
// backend's number: units that others use too remain.
func (t *Ticket) untrack() int {
	if !t.tracked {
		return 0
	}
	t.tracked = false
	return -t.fleet.gateways[t.gateway].active.remove(t.used) - t.partial
}

func (t *Ticket) settle(back load, now time.Duration) {
	t.load.add(back)
	t.fleet.books.book(t.gateway, t.Backend, back, now)
	t.fleet.books.deliver(now)
}
