package feed

import (
	"errors"
	"fmt"
	"time"
)

var errStalled = errors.New("no answer in time")

// unordered is an answer in which no batch had the number that came next.
func unordered(want uint64) error {
	return fmt.Errorf("its answers did not go on at batch %d, which is missing", want)
}

// recovery is the time spent replaying, over all the replays that it takes.
type recovery struct {
	since   time.Duration
	took    time.Duration // until the last tick
	batches uint64        // that came
}

// purpose is what a replay is for.
type purpose uint8

const (
	// fill brings batches that are missing, from next on.
	fill purpose = iota
	// verify begins with the batch before next: the same payload means the same
	// process, and the rest continues what is known.
	verify
	// fresh brings all there is. The first batch may have any number, since the
	// engine's ring wraps.
	fresh
)

// replay is the one that is asked for, or will be at retryAt.
type replay struct {
	active   bool
	id       uint64
	purpose  purpose
	answered bool   // a batch came
	useful   bool   // a batch of it was taken
	ordered  bool   // and it had the number that came next
	batches  int    // that came
	blind    bool   // something is missing that no waiting batch shows
	before   uint64 // batches below were published when it was asked
	progress time.Duration
	retryAt  time.Duration
	tries    int // failed in a row
	useless  int // in a row brought nothing in order
	asks     int // in this recovery
	err      error
	vain     int // how many in a row came to nothing before it was given up
}

// request asks for all from a number on. The recovery's counts go on.
func (m *machine) request(now time.Duration, from uint64, p purpose) {
	m.counts.replays++
	r := &m.replay
	*r = replay{
		active: true, id: m.counts.replays, purpose: p, progress: now,
		blind: r.blind, before: m.pending.end(), tries: r.tries, useless: r.useless, asks: r.asks + 1, err: r.err, vain: r.vain,
	}
	if m.mode != replaying {
		m.mode, m.recovery = replaying, recovery{since: now}
	}
	m.fx.ask(r.id, from)
}

// more asks for what a replay has not brought. One that brought nothing in order may
// have met holes in the ring; a socket that speaks of other numbers altogether does so
// each time, and is asked ever more slowly, then no more.
func (m *machine) more(now time.Duration) {
	r := &m.replay
	if r.ordered {
		m.again(now)
		return
	}
	r.useless++
	r.err = unordered(m.next)
	switch pauses := r.useless - maxTries; {
	case pauses < 0:
		m.again(now)
	case pauses < maxTries:
		m.fx.hangUp()
		r.active = false
		r.retryAt = now + retryStep<<pauses
	default:
		m.giveUp(now)
	}
}

// again asks for what is still missing.
func (m *machine) again(now time.Duration) {
	r := &m.replay
	switch {
	case r.asks >= maxAsks:
		m.giveUp(now)
	case r.purpose == verify && !r.answered:
		m.request(now, m.next-1, verify)
	case r.purpose == fresh && !r.answered:
		m.request(now, 0, fresh)
	default:
		m.request(now, m.next, fill)
	}
}

// startOver forgets what is known and asks for all there is: another process
// speaks, or one that can't be told from another.
func (m *machine) startOver(now time.Duration, why Reason) {
	m.show(false)
	m.reset(why)
	m.begun, m.summed, m.doubt = false, false, ""
	m.replay = replay{}
	m.request(now, 0, fresh)
}

// replayed takes one batch of a replay.
func (m *machine) replayed(now time.Duration, id uint64, b batch) {
	r := &m.replay
	if !r.active || r.id != id {
		return
	}
	first := !r.answered
	r.answered = true
	r.batches++
	m.recovery.batches++
	if first || b.seq >= m.next {
		r.progress = now
	}
	if first && r.purpose == verify {
		m.verified(now, b)
		return
	}
	if first && r.purpose == fresh {
		m.renew(b)
	}
	switch {
	case b.seq < m.next:
	case b.seq == m.next:
		m.take(b)
		r.useful, r.ordered, r.tries, r.useless = true, true, 0, 0
	case first && r.purpose == fill:
		m.hole(now, b) // the engine does not have it
		r.useful, r.tries = true, 0
	default:
		m.more(now) // pieces were lost on the way
	}
}

// verified compares the batch that was applied last with what the engine sent
// under its number.
func (m *machine) verified(now time.Duration, b batch) {
	switch {
	case b.seq == m.next-1 && b.sum == m.sum:
		m.replay.purpose = fill
	case b.seq > m.next-1:
		m.startOver(now, ResetWrapped)
	default:
		m.startOver(now, ResetRestart)
	}
}

// renew begins with the first batch of all there is. What is known until now
// stays until it comes.
func (m *machine) renew(b batch) {
	if m.begun {
		m.reset(ResetResync)
	}
	m.begun, m.next, m.stale = true, b.seq, false
	m.doubt = m.doubtLate(b.seq)
}

// hole is called with the batch after some that the engine no longer has. That is
// an answer, but one that made asking worth little.
func (m *machine) hole(now time.Duration, b batch) {
	m.coolDown(now)
	m.lose(b)
}

// ended is the marker after the last batch that the engine has. Some may have been
// lost before it: only numbers that follow each other count, and after a long
// replay an answer that brings nothing more.
func (m *machine) ended(now time.Duration, id uint64) {
	r := &m.replay
	if !r.active || r.id != id {
		return
	}
	r.active = false
	switch {
	case r.purpose == verify && !r.answered:
		m.startOver(now, ResetRestart) // it has published less than we applied
		return
	case r.purpose == fresh && !r.answered:
		m.stale = false // there is nothing that would help
		if !m.begun {
			// It had published nothing when it was asked. What waits may not begin there.
			m.begun, m.next, m.summed, m.doubt = true, 0, false, ""
		}
	case r.batches >= m.trust:
		m.more(now)
		return
	}
	m.settle(now)
}

// settle takes the live batches that waited, and goes live if nothing is missing
// among them.
func (m *machine) settle(now time.Duration) {
	m.replay.purpose = fill
	for m.pending.first() != nil {
		b := m.pending.pop()
		switch {
		case !m.begun:
			m.adopt(b)
		case b.seq < m.next:
		case b.seq == m.next:
			m.take(b)
		case m.replay.useful || b.seq >= m.replay.before:
			m.pending.add(b, m.next)
			m.more(now)
			return
		default:
			m.hole(now, b)
			m.replay.useful = true // of a later one that is missing nothing is known
		}
	}
	if m.pending.lossy {
		m.pending.lossy, m.replay.blind = false, true
		m.more(now)
		return
	}
	m.replay.err = nil
	m.golive()
}

// failed is a replay that broke off: refused, cut, or silent.
func (m *machine) failed(now time.Duration, id uint64, err error) {
	r := &m.replay
	if !r.active || r.id != id {
		return
	}
	m.fx.hangUp()
	r.active, r.err = false, err
	r.tries++
	if r.tries >= maxTries {
		m.giveUp(now)
		return
	}
	r.retryAt = now + time.Duration(r.tries)*retryStep
}

// giveUp goes on without a replay. What can't be shown to be complete is forgotten;
// all there is will be asked for after the cool-down.
func (m *machine) giveUp(now time.Duration) {
	m.fx.hangUp()
	m.replay.active = false
	m.replay.vain = max(m.replay.tries, m.replay.useless)
	m.coolDown(now)
	m.stale = true
	unsure := m.replay.blind || m.pending.lossy || !m.hasHeard
	m.pending.lossy = false
	switch {
	case !m.begun:
	case m.replay.purpose == verify:
		m.reset(ResetRestart)
		m.begun = false
	case unsure:
		m.reset(ResetGap)
		m.begun = false
	}
	for m.pending.first() != nil {
		m.afterwards(m.pending.pop())
	}
	m.golive()
}

// afterwards takes a live batch that waited for a replay in vain.
func (m *machine) afterwards(b batch) {
	switch {
	case !m.begun:
		m.adopt(b)
	case b.seq == m.next:
		m.take(b)
	case b.seq > m.next:
		m.lose(b)
	}
}
