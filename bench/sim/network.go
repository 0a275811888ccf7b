package sim

import (
	"math/rand/v2"
	"time"
)

// network carries frames between nodes: each pair's in order, each after the
// delay, give or take a tenth, and some not at all.
type network struct {
	loop  *loop
	rng   *rand.Rand
	delay time.Duration
	loss  float64
	wires map[[2]int]*wire
	bytes int64 // of all frames sent
}

// frameHead is what a frame costs beyond its body: length, lane and kind.
const frameHead = 8

// wire is one direction between two nodes.
type wire struct {
	arrives time.Duration // of what was sent last
	sent    time.Duration // when the open parcel was begun
	open    *parcel
}

// parcel is frames that were sent at the same moment: they arrive together.
type parcel struct{ frames []frame }

type frame struct {
	kind byte
	body []byte
}

// send carries a frame from one node to another; deliver is called with each
// parcel's frames when it arrives.
func (n *network) send(from, to int, f frame, deliver func([]frame)) {
	n.bytes += int64(len(f.body)) + frameHead
	if n.loss > 0 && n.rng.Float64() < n.loss {
		return
	}
	w := n.wires[[2]int{from, to}]
	if w == nil {
		w = &wire{}
		n.wires[[2]int{from, to}] = w
	}
	if w.open != nil && w.sent == n.loop.now {
		w.open.frames = append(w.open.frames, f)
		return
	}
	p := &parcel{frames: []frame{f}}
	w.open, w.sent = p, n.loop.now
	w.arrives = max(w.arrives, n.loop.now+n.travel())
	n.loop.at(w.arrives, func() {
		if w.open == p {
			w.open = nil
		}
		deliver(p.frames)
	})
}

func (n *network) travel() time.Duration {
	if n.delay < 10 {
		return n.delay
	}
	return n.delay - n.delay/10 + time.Duration(n.rng.Int64N(int64(n.delay/5)))
}
