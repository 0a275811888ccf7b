package router

import (
	"fmt"
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
	// FanHalf (c) is how many continuations a KiB of shared prefix must have for a
	// copy to another backend to cost half: the more is to be computed, the more
	// must be there to make use of it. Small values copy whatever two conversations
	// share; large ones send a popular system prompt to one backend. Default 1.
	FanHalf float64
	// Move is what leaving the backend that served a conversation's last turn
	// costs, in bytes of CBR, beyond the novel work itself: the turns to come
	// would find their cache in two places. Without it the first turns of short
	// conversations scatter whenever one backend is a request or two ahead; far
	// above 8 KiB a busy backend keeps conversations that would be better off
	// elsewhere. Default 6 KiB.
	Move float64
	// Pressure is the idle time of the block that a full cache would evict next
	// at which its pressure has fallen to 37 %. Too short, and caches that thrash
	// still take copies; too long, and idle ones refuse them. Default 1000 s.
	Pressure time.Duration
	// Evict is how much dearer novel work is under full pressure, since it pushes
	// out what others would have hit: a share of NovelFactor. At 0 conversations
	// settle without regard to where there is room; far above 0.25 room outweighs
	// queues. Default 0.1.
	Evict float64
	// Queue is the mean novel-block load of the eligible backends, in bytes of CBR,
	// at which novel work costs twice as much: it delays as many as wait. Small
	// values let one busy moment scatter load unevenly; with large ones a fleet at
	// its limit computes what it could have hit. Default 200,000.
	Queue float64
	// Slow is how much of the time counts that a slower backend takes longer for the
	// request's own novel work. At 0 an idle slow backend is as good as an idle fast
	// one; far above 0.1 conversations crowd the caches of the fast. Default 0.05.
	Slow float64
	// Crowd is what each request costs beyond those that a backend's cache holds at
	// once, in bytes of CBR: it waits for another one's answer to end. Small values
	// let answers queue at one engine while others have room; far above 4 KiB
	// prefixes are given up for it that a full fleet can't spare. Default 2 KiB.
	Crowd float64
	// CrossZone is what a backend of another zone than the node's costs, in bytes of
	// CBR: the way there takes longer and is often paid for. It is one term among the
	// others, so a prefix or a shorter queue there still draws requests over. At 0
	// zones don't count; above some 100 KiB a zone's fleet is driven to its limit while
	// the next one idles. Where the node or a backend has no zone it counts nothing.
	// Default 4 KiB.
	CrossZone float64
}

// DefaultCost are the constants that the defaults use: what bench/study found to
// be good on all of its workloads, not the best on any.
func DefaultCost() CostConfig {
	return CostConfig{NovelFactor: 4, FanHalf: 1, Move: 6144, Pressure: 1000 * time.Second, Evict: 0.1, Queue: 200_000, Slow: 0.05, Crowd: 2048, CrossZone: 4096}
}

func (c *CostConfig) validate() error {
	if c.NovelFactor < 0 || c.FanHalf <= 0 || c.Move < 0 || c.Pressure <= 0 || c.Evict < 0 || c.Queue <= 0 || c.Slow < 0 || c.Crowd < 0 {
		return fmt.Errorf("cost: novel factor %v, move %v, evict %v, slow %v and crowd %v must not be negative, fan half %v, pressure %v and queue %v must be above zero",
			c.NovelFactor, c.Move, c.Evict, c.Slow, c.Crowd, c.FanHalf, c.Pressure, c.Queue)
	}
	if !(c.CrossZone >= 0) || math.IsInf(c.CrossZone, 0) {
		return fmt.Errorf("cost: cross zone %v must be a number of bytes from 0 on", c.CrossZone)
	}
	return nil
}

// costPolicy is the default: one continuous cost in bytes of CBR,
//
//	load(b) + K * (1 + e p(b)) * sum over novel blocks i of 1 / (1 + (1 - p(b)) * (fan(i) - 1) / (c S))
//
// with K = k * (1 + Q / Queue), where Q is the mean novel-block load: what is
// computed delays all who wait. S is how much of the chain is shared, in KiB;
// fan(i) is the largest fan-out at or after block i of the chain. p(b) is the
// pressure on b's cache, exp(-age/Pressure), 0 while it has room, where age is how
// long the block that goes next has been idle: the nearer it is to 1, the likelier
// a copy pushes out what others would have hit.
//
// A backend of less than full speed costs Slow times what the request's own work
// takes longer there, and one whose cache is full of requests that run Crowd for
// each that it would have to wait for. One of another zone costs CrossZone more. It
// has no threshold: a backend that holds the prefix wins until waiting for it
// costs more than computing the prefix elsewhere, and a prefix that many share is
// cheap to copy.
type costPolicy struct{ c CostConfig }

func (costPolicy) looks() bool { return true }

func (p costPolicy) order(q *question) {
	d := &q.discount
	d.prepare(q, p.c)
	// Somebody served the turn before, if more is held than what is shared.
	own := q.req.Phase == cbr.FollowUp && q.longest > d.sharedBytes
	for i := range q.facts {
		f, held, level := &q.facts[i], q.held[i], 0
		if f.mirrored {
			level = q.pressure(i, p.c.Pressure)
		}
		cost := d.alone(held)
		if held < d.sharedBytes {
			cost += d.tail(level, held)
		}
		if level > 0 {
			cost *= 1 + p.c.Evict*float64(level)/levels
		}
		if f.room > 0 {
			cost += p.c.Crowd * float64(q.beyondRoom(f))
		}
		cost += p.c.Slow * (f.slowness - 1) * float64(q.novel(held))
		if own && held < q.longest {
			cost += p.c.Move
		}
		if f.remote {
			cost += p.c.CrossZone
		}
		q.offer(i, cost)
	}
}

// beyondRoom is how many requests a backend would have beyond those that its cache
// holds.
func (q *question) beyondRoom(f *fact) int64 {
	return max(q.router.loads.Load(f.slot).Active+f.bypass+1-f.room, 0)
}

// sampled is how many of the eligible are looked at for the mean load.
const sampled = 64

// meanNovel is the mean novel-block load of the eligible, over their speed.
func (q *question) meanNovel() float64 {
	n := len(q.facts)
	step, first := 1, 0
	if n > sampled {
		step = n / sampled
		first = int(q.order.Tie % uint64(step))
	}
	sum, count := 0.0, 0
	for i := first; i < n; i += step {
		sum += float64(q.router.loads.Load(q.facts[i].slot).Novel) * q.facts[i].slowness
		count++
	}
	return sum / float64(count)
}

// levels is how finely p(b) is told apart: the cost of a chain's tail is worked
// out once per level that occurs, not once per backend.
const levels = 64

// pressureKept is how long a pressure is taken from what it was: it moves on a scale
// of minutes, and working it out for thousands of backends takes longer than all else.
const pressureKept = 250 * time.Millisecond

// pressure is p(b) in levels, for the eligible backend i.
func (q *question) pressure(i int, scale time.Duration) int {
	f, now := &q.facts[i], uint64(q.now/time.Millisecond)+1 // 0 stands for never
	if was := f.pressure >> 8; was != 0 && now-was < uint64(pressureKept/time.Millisecond) {
		return int(f.pressure & 0xff)
	}
	level := 0
	if age, full := q.router.locations.Age(f.slot, q.now); full {
		level = pressureLevel(age, scale)
	}
	q.eligible[i].pressure.Store(now<<8 | uint64(level))
	return level
}

func pressureLevel(age, scale time.Duration) int {
	return int(math.Round(levels * math.Exp(-float64(age)/float64(scale))))
}

// discount knows, for every level of pressure, what the tail of the chain from block m
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
	tails       [levels + 1][]float64 // tails[p][m]: cost of the shared blocks from m on
	known       [levels + 1]bool
}

func (d *discount) prepare(q *question, c CostConfig) {
	d.c, d.fan = c, q.walk.Fan
	d.blockBytes, d.bytes, d.perByte = int64(q.router.cfg.BlockSize), q.req.Bytes, c.NovelFactor
	d.perByte *= 1 + q.meanNovel()/c.Queue
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

// tail is what the shared blocks beyond held bytes cost at a level of pressure;
// held is less than what is shared.
func (d *discount) tail(level int, held int64) float64 {
	if !d.known[level] {
		d.fill(level)
	}
	return d.tails[level][held/d.blockBytes]
}

func (d *discount) fill(level int) {
	d.known[level] = true
	tail := d.tails[level][:0]
	for range d.shared {
		tail = append(tail, 0)
	}
	sum, room := 0.0, 1-float64(level)/levels
	half := max(d.c.FanHalf*float64(d.sharedBytes)/1024, 1)
	for i := d.shared - 1; i >= 0; i-- {
		sum += d.perByte * float64(d.blockBytes) / (1 + room*float64(d.fan[i]-1)/half)
		tail[i] = sum
	}
	d.tails[level] = tail
}
