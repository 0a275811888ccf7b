package rival

import "time"

// load is what gateways have booked for one backend.
type load struct {
	requests int // routed and not yet answered whole
	prompt   int // their prompts, in tokens
	prefill  int // tokens to compute of those whose first token hasn't come
	blocks   int // units that they use, each counted once
}

func (l *load) add(d load) {
	l.requests += d.requests
	l.prompt += d.prompt
	l.prefill += d.prefill
	l.blocks += d.blocks
}

func (l load) negative() load {
	return load{-l.requests, -l.prompt, -l.prefill, -l.blocks}
}

// books are the loads as the gateways know them: each its own at once, and those
// of the others after the delay where they are shared, else never.
type books struct {
	shared bool
	delay  time.Duration
	seen   []load   // what everybody has been told
	own    [][]load // by gateway: what the others have not been told of
	told   []change // on its way from told[due] on, ascending by time
	due    int
}

type change struct {
	due              time.Duration
	gateway, backend int
	load             load
}

func newBooks(gateways, backends int, shared bool, delay time.Duration) *books {
	b := &books{shared: shared, delay: delay, seen: make([]load, backends), own: make([][]load, gateways)}
	for g := range b.own {
		b.own[g] = make([]load, backends)
	}
	return b
}

func (b *books) book(gateway, backend int, d load, now time.Duration) {
	b.own[gateway][backend].add(d)
	if b.shared {
		b.told = append(b.told, change{now + b.delay, gateway, backend, d})
	}
}

// deliver tells everybody what is due.
func (b *books) deliver(now time.Duration) {
	for ; b.due < len(b.told) && b.told[b.due].due <= now; b.due++ {
		c := b.told[b.due]
		b.own[c.gateway][c.backend].add(c.load.negative())
		b.seen[c.backend].add(c.load)
	}
	if b.due > len(b.told)/2 {
		b.told, b.due = b.told[:copy(b.told, b.told[b.due:])], 0
	}
}

// view writes the loads as a gateway knows them.
func (b *books) view(gateway int, loads []load) {
	for i := range loads {
		loads[i] = b.seen[i]
		loads[i].add(b.own[gateway][i])
	}
}
