package feed

import (
	"fmt"
	"hash/maphash"
	"time"
)

// mode is what a machine is doing.
type mode uint8

const (
	connecting mode = iota // the event socket is down
	replaying              // live batches wait for what the replay socket says
	live                   // batches are taken as they come
)

const (
	downAfter   = 5 * time.Second        // Config.DownAfter, by default
	silentAfter = 30 * time.Second       // Config.SilentAfter, by default
	stallAfter  = 3 * time.Second        // of a replay that says nothing, by default
	longAfter   = 10 * time.Second       // of replaying without an end that is worth a word
	retryStep   = 500 * time.Millisecond // before the second try; twice that before the third
	maxTries    = 3                      // of replays in a row that fail; of useless ones without a pause, and with one
	trustBelow  = 500                    // batches: the engine's socket drops what a reader of 1,000 leaves
	maxAsks     = 128                    // of replays in one recovery, whatever they bring
	coolFirst   = time.Second            // no replay after one that was of no use
	coolMost    = 30 * time.Second
	coolForgets = time.Minute // a cool-down that is over for so long begins small again
)

// outcome is what became of a batch that was applied.
type outcome uint8

const (
	taken     outcome = iota
	cleared           // and in it the engine forgot all that came before
	regrouped         // and it showed that what was taken before was of the wrong blocks
	damaged           // nothing of it was taken, for a reason
)

// effects are what a machine does to the world, at once and in order. None of them
// calls the machine back.
type effects interface {
	apply(payload []byte) (outcome, error)
	reset(Reason)
	setLive(bool)
	// ask begins a replay and ends the one before. What comes of it is told with id.
	ask(id, from uint64)
	// hangUp ends a replay that nobody needs any more.
	hangUp()
}

// batch is a numbered payload, from either socket.
type batch struct {
	seq     uint64
	payload []byte
	sum     uint64
}

var seed = maphash.MakeSeed()

func newBatch(seq uint64, payload []byte) batch {
	return batch{seq, payload, maphash.Bytes(seed, payload)}
}

// machine decides what is taken, what is asked for again, and when what is known
// is worth nothing. It has no goroutine and no clock: times are arguments.
type machine struct {
	config *Config
	fx     effects
	counts counts

	mode    mode
	shown   bool          // SetLive(true) was the last word
	downAt  time.Duration // where connecting
	downErr error
	dropped bool // the socket has been down for so long that nothing is known any more

	// What was applied last: all below next, as far as it can be known.
	begun  bool
	next   uint64
	sum    uint64 // of the batch before next
	summed bool

	// The live stream of this connection. It never goes back on its own.
	heard    batch // without payload
	hasHeard bool
	resumed  bool // without a replay socket: the first batch must be next

	pending  pending
	replay   replay
	recovery recovery
	trust    int // batches in a replay from which on its end is doubted

	cool      time.Duration
	coolUntil time.Duration
	stale     bool   // a replay would have helped and could not be had: tried again after coolUntil
	doubt     string // why what is known is less than what the engine holds
	silence   silence
}

func newMachine(c *Config, fx effects, now time.Duration) *machine {
	return &machine{config: c, fx: fx, downAt: now, trust: trustBelow, pending: pending{max: c.MaxPending}}
}

// canReplay reports whether there is a replay socket at all.
func (m *machine) canReplay() bool { return m.config.Replay != "" }

// mayReplay reports whether a replay may begin now.
func (m *machine) mayReplay(now time.Duration) bool {
	return m.canReplay() && now >= m.coolUntil
}

// connected begins the stream of a new connection. It may be another process that
// speaks now: with a replay socket the last batch is compared, without one the
// first batch must follow the last.
func (m *machine) connected(now time.Duration) {
	m.fx.hangUp()
	m.hasHeard, m.dropped, m.downErr = false, false, nil
	m.pending.clear()
	m.silence.clear()
	if !m.canReplay() {
		m.resumed = m.begun
		m.golive()
		return
	}
	m.replay = replay{}
	if m.begun && m.summed {
		m.request(now, m.next-1, verify)
	} else {
		m.begun = false
		m.request(now, 0, fresh)
	}
}

// other forgets all, since another process than the one heard is about to speak.
func (m *machine) other() {
	if m.begun {
		m.reset(ResetRestart)
	}
	m.begun, m.summed, m.doubt = false, false, ""
}

// disconnected keeps what is known for a while: connections break for less than a
// restart.
func (m *machine) disconnected(now time.Duration, err error) {
	if m.mode == connecting {
		return
	}
	m.fx.hangUp()
	m.mode, m.downAt, m.downErr = connecting, now, err
	m.replay.active = false
	m.pending.clear()
	m.silence.clear()
}

// unreachable is a connection that did not come about.
func (m *machine) unreachable(err error) {
	if m.mode == connecting {
		m.downErr = err
	}
}

// malformed is a message without a number. If it was a batch, its number is
// missing from those that follow.
func (m *machine) malformed(err error) {
	m.counts.damaged++
	m.doubt = fmt.Sprintf("%v: does %s belong to another program?", err, m.config.Endpoint)
}

// tick is called at deadline or later.
func (m *machine) tick(now time.Duration) {
	switch {
	case m.mode == connecting:
		if !m.dropped && now-m.downAt >= m.config.DownAfter {
			m.dropAll()
		}
	case m.mode == replaying && m.replay.active:
		if now-m.replay.progress >= m.config.stallAfter {
			m.failed(now, m.replay.id, errStalled)
		}
	case m.mode == replaying:
		if now >= m.replay.retryAt {
			m.again(now)
		}
	case m.stale && now >= m.coolUntil:
		m.replay = replay{err: m.replay.err, vain: m.replay.vain}
		m.request(now, 0, fresh)
	}
	if m.mode == replaying {
		m.recovery.took = now - m.recovery.since
	}
	m.silence.tick(now, m.config.SilentAfter)
}

// deadline is when tick has something to do; 0 if nothing waits.
func (m *machine) deadline() time.Duration {
	d := m.silence.deadline(m.config.SilentAfter)
	at := func(t time.Duration) {
		if d == 0 || t < d {
			d = max(t, 1)
		}
	}
	switch {
	case m.mode == connecting:
		if !m.dropped {
			at(m.downAt + m.config.DownAfter)
		}
	case m.mode == replaying && m.replay.active:
		at(m.replay.progress + m.config.stallAfter)
	case m.mode == replaying:
		at(m.replay.retryAt)
	case m.stale:
		at(m.coolUntil)
	}
	if m.mode == replaying && m.recovery.took < longAfter {
		at(m.recovery.since + longAfter)
	}
	return d
}

// void forgets what is known, since the engine was told to, or is known to have
// restarted. The stream goes on.
func (m *machine) void() { m.reset(ResetVoid) }

// resync has all there is asked for, as soon as a replay may begin.
func (m *machine) resync() { m.stale = m.canReplay() }

func (m *machine) dropAll() {
	m.dropped = true
	m.show(false)
	if m.begun {
		m.reset(ResetDown)
	}
	m.begun, m.summed, m.stale, m.doubt = false, false, false, ""
}

func (m *machine) reset(why Reason) {
	m.counts.resets[why]++
	m.fx.reset(why)
}

func (m *machine) show(live bool) {
	if m.shown != live {
		m.shown = live
		m.fx.setLive(live)
	}
}

func (m *machine) golive() {
	m.mode = live
	m.show(true)
}

// coolDown is called after a replay that did not help: the next one waits.
func (m *machine) coolDown(now time.Duration) {
	if now-m.coolUntil > coolForgets {
		m.cool = 0
	}
	m.cool = min(max(2*m.cool, coolFirst), coolMost)
	m.coolUntil = now + m.cool
}
