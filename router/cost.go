package router

import (
	"math"
	"time"

	"kvca/state/cbr"
)

// CostConfig are the constants of the cost policy. The zero value is not
// usable: start from DefaultCost.
type CostConfig struct {
	// NovelFactor (k) is what one novel byte costs beyond one byte of load. It
	// delays everyone behind it and evicts what others would have hit. At 1
	// prefixes scatter over the fleet; far above 5 a full queue no longer
	// drives requests away. Default 4.
	NovelFactor float64
	// FanHalf (c) is how many further continuations of a block halve what its
	// copy to another backend costs. Small values copy whatever two
	// conversations share; large ones send a popular system prompt to one
	// backend. Default 4.
	FanHalf float64
	// Move is what leaving the backend that served a conversation's last turn
	// costs, in bytes of CBR, beyond the novel work itself: the turns to come
	// would find their cache in two places. Without it the first turns of short
	// conversations scatter whenever one backend is a request or two ahead; far
	// above 8 KiB a busy backend keeps conversations that would be better off
	// elsewhere. Default 6 KiB.
	Move float64
	// Pressure is the idle time of the block that a full cache would evict next
	// at which the discount for shared blocks has faded to 63 % of itself. Too
	// short, and caches that thrash still take copies; too long, and idle ones
	// refuse them. Default 300 s.
	Pressure time.Duration
}

// DefaultCost are the constants that the defaults use.
func DefaultCost() CostConfig {
	return CostConfig{NovelFactor: 4, FanHalf: 4, Move: 6144, Pressure: 300 * time.Second}
}

// costPolicy is the default: one continuous cost in bytes of CBR,
//
//	load(b) + sum over novel blocks i of k / (1 + g(b) * (fan(i) - 1) / c)
//
// where fan(i) is the largest fan-out at or after block i of the chain, and g(b)
// fades from 1 to 0 as b's cache comes under pressure. It has no threshold: a
// backend that holds the prefix wins until waiting for it costs more than
// computing the prefix elsewhere, and a prefix that many share is cheap to copy.
type costPolicy struct{ c CostConfig }

func (costPolicy) looks() bool { return true }

func (p costPolicy) order(q *question) {
	d := &q.discount
	d.prepare(q, p.c)
	// Somebody served the turn before, if more is held than what is shared.
	own := q.req.Phase == cbr.FollowUp && q.longest > d.sharedBytes
	for i, b := range q.eligible {
		held := q.held[i]
		cost := d.alone(held)
		if held < d.sharedBytes {
			cost += d.tail(q.gain(b, p.c.Pressure), held)
		}
		if own && held < q.longest {
			cost += p.c.Move
		}
		q.offer(i, cost)
	}
}

// levels is how finely g(b) is told apart: the cost of a chain's tail is worked
// out once per level that occurs, not once per backend.
const levels = 16

// gain is g(b) in levels: full while b's cache has room.
func (q *question) gain(b *Backend, pressure time.Duration) int {
	age, full := q.router.locations.Age(b.Slot, q.now)
	if !full {
		return levels
	}
	return gainLevel(age, pressure)
}

func gainLevel(age, pressure time.Duration) int {
	return int(math.Round(levels * (1 - math.Exp(-float64(age)/float64(pressure)))))
}

// discount knows, for every level of g, what the tail of the chain from block m
// on costs. Only blocks whose fan-out is above one are discounted, and since
// fan(i) never grows along a chain they are its first ones: shared of them.
type discount struct {
	fan        []uint32
	shared     int
	perByte    float64 // cost of a byte that is not discounted
	bytes      int64   // of the whole request
	blockBytes int64
	// sharedBytes are those of the shared blocks.
	sharedBytes int64
	c           CostConfig
	tails       [levels + 1][]float64 // tails[g][m]: cost of the shared blocks from m on
	known       [levels + 1]bool
}

func (d *discount) prepare(q *question, c CostConfig) {
	d.c, d.fan = c, q.walk.Fan
	d.blockBytes, d.bytes, d.perByte = int64(q.router.cfg.BlockSize), q.req.Bytes, c.NovelFactor
	d.shared = 0
	for d.shared < len(d.fan) && d.fan[d.shared] > 1 {
		d.shared++
	}
	d.sharedBytes = int64(d.shared) * d.blockBytes
	d.known = [levels + 1]bool{}
}

// alone is what the novel bytes that are not shared cost, with held bytes there.
func (d *discount) alone(held int64) float64 {
	return float64(max(d.bytes-max(held, d.sharedBytes), 0)) * d.perByte
}

// tail is what the shared blocks beyond held bytes cost at level g; held is less
// than what is shared.
func (d *discount) tail(g int, held int64) float64 {
	if !d.known[g] {
		d.fill(g)
	}
	return d.tails[g][held/d.blockBytes]
}

func (d *discount) fill(g int) {
	d.known[g] = true
	tail := d.tails[g][:0]
	for range d.shared {
		tail = append(tail, 0)
	}
	sum, gain := 0.0, float64(g)/levels
	for i := d.shared - 1; i >= 0; i-- {
		sum += d.perByte * float64(d.blockBytes) / (1 + gain*float64(d.fan[i]-1)/d.c.FanHalf)
		tail[i] = sum
	}
	d.tails[g] = tail
}
