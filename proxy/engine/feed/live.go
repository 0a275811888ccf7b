package feed

import "time"

// arrived takes a batch of the live stream.
func (m *machine) arrived(now time.Duration, b batch) {
	if m.mode == connecting {
		return // of a connection that is given up
	}
	m.silence.heard(now)
	if m.hasHeard && b.seq <= m.heard.seq {
		m.wentBack(now, b)
		return
	}
	m.hasHeard, m.heard = true, batch{seq: b.seq, sum: b.sum}
	resumed := m.resumed
	m.resumed = false
	switch {
	case m.mode == replaying:
		if !m.begun || b.seq >= m.next {
			m.hold(b)
		}
	case !m.begun:
		m.adopt(b)
	case b.seq == m.next:
		m.take(b)
	case resumed:
		m.reset(ResetRestart)
		m.adopt(b)
	case b.seq < m.next:
		m.counts.overlap++ // the replay was ahead of the live stream
	default:
		m.gap(now, b)
	}
}

// wentBack is called when the live stream repeats itself: a batch sent twice, or,
// since a new process would have a new connection, a broker between us and an
// engine that restarted. During a replay that is left to the replay.
func (m *machine) wentBack(now time.Duration, b batch) {
	if m.mode == replaying || (b.seq == m.heard.seq && b.sum == m.heard.sum) {
		m.counts.overlap++
		return
	}
	m.heard = batch{seq: b.seq, sum: b.sum}
	if !m.mayReplay(now) {
		// It may also be an old batch that came late: what it stored can be gone
		// since, so it is not taken.
		m.reset(ResetRestart)
		m.begun, m.stale = true, m.canReplay()
		m.mark(b)
		m.doubt = m.doubtBack(b.seq)
		return
	}
	m.coolDown(now) // a stream that does so all the time must not have us replay all the time
	m.startOver(now, ResetRestart)
	m.hold(b)
}

// gap is called with the batch after one that is missing.
func (m *machine) gap(now time.Duration, b batch) {
	m.counts.gaps++
	if !m.mayReplay(now) {
		m.stale = m.canReplay()
		m.lose(b)
		return
	}
	m.hold(b)
	m.replay = replay{}
	m.request(now, m.next, fill)
}

// lost is called when this gateway dropped live batches for want of room.
func (m *machine) lost(now time.Duration) {
	switch {
	case m.mode == replaying:
		m.pending.lossy = true
	case m.mode == live && m.begun && !m.mayReplay(now):
		m.stale = m.canReplay() // without one the next number tells
	case m.mode == live && m.begun:
		m.counts.gaps++
		m.replay = replay{blind: true}
		m.request(now, m.next, fill)
	}
}

// lose gives up what is known, since b follows batches that nobody can bring back:
// a block stored before may have been removed in one of them.
func (m *machine) lose(b batch) {
	m.reset(ResetGap)
	m.doubt = m.doubtGap(m.next, b.seq)
	m.take(b)
}

// adopt begins with b, knowing nothing from before.
func (m *machine) adopt(b batch) {
	m.begun = true
	m.doubt = m.doubtLate(b.seq)
	m.take(b)
}

// take applies b. A batch that can't be read is a gap that no replay fills: it
// would bring the same bytes. What follows it is fresh knowledge.
func (m *machine) take(b batch) {
	m.mark(b)
	m.counts.batches++
	switch o, why := m.fx.apply(b.payload); o {
	case cleared:
		m.doubt, m.stale = "", false
	case regrouped:
		m.stale = m.canReplay()
	case damaged:
		m.counts.damaged++
		m.reset(ResetDamaged)
		m.doubt = m.doubtDamaged(b.seq, why)
	}
}

func (m *machine) mark(b batch) {
	m.next, m.sum, m.summed = b.seq+1, b.sum, true
}

// hold keeps a live batch until the replay is through.
func (m *machine) hold(b batch) {
	if !m.pending.add(b, m.floor()) {
		m.counts.dropped++
	}
}

// floor is the first number that is not applied yet.
func (m *machine) floor() uint64 {
	if m.begun {
		return m.next
	}
	return 0
}
