package quota

import "time"

// bucket fills at a rate up to its room. It may be in debt.
type bucket struct {
	level float64
	at    time.Duration // up to when it is filled
}

// maxDebt is how many seconds of its limit a key can be in debt: whatever a request
// turned out to cost, the key is not shut for longer. A request that costs more than
// that is free beyond it.
const maxDebt = 15.0

func (b *bucket) fill(now time.Duration, rate, room float64) {
	if now > b.at {
		b.level += rate * (now - b.at).Seconds()
		b.at = now
	}
	b.level = min(b.level, room)
}

// take takes n, which may be more than there is, or negative.
func (b *bucket) take(n, rate, room float64) {
	b.level = min(max(b.level-n, -maxDebt*rate), room)
}

// until is how long it takes to fill up to level.
func (b *bucket) until(level, rate float64) time.Duration {
	if b.level >= level || rate <= 0 {
		return 0
	}
	return seconds((level - b.level) / rate)
}

// meter measures a rate over the last quarter of a second or so. Counting is cheap:
// the rate is renewed once a window.
type meter struct {
	rate  float64 // a second
	count float64 // since at
	at    time.Duration
}

const (
	meterWindow = 50 * time.Millisecond
	meterSpan   = 250 * time.Millisecond
)

func (m *meter) add(now time.Duration, n float64) {
	m.roll(now)
	m.count += n
}

// roll makes the rate current. The weight of a window is its length, as far as that
// is less than all the meter remembers.
func (m *meter) roll(now time.Duration) {
	passed := now - m.at
	if passed < meterWindow {
		return
	}
	weight := passed.Seconds() / (passed + meterSpan).Seconds()
	if passed > 4*meterSpan {
		weight = 1
	}
	m.rate += weight * (m.count/passed.Seconds() - m.rate)
	m.count, m.at = 0, now
}
