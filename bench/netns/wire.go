package netns

import (
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxPacket is more than the devices' MTU.
	maxPacket = 2048
	// maxQueue bounds the packets that are under way to one node.
	maxQueue = 4096
)

// Faults are what the wire does to packets, each way.
type Faults struct {
	Delay time.Duration
	// Loss is the share of packets that are lost.
	Loss float64
}

// Counts are the packets that the wire has carried, lost by chance, not carried
// from one part to another, and dropped since a queue was full.
type Counts struct{ Carried, Lost, Cut, Dropped int64 }

// wire carries packets between the ends of a lab.
type wire struct {
	names  []string
	faults Faults
	ends   []*os.File
	queues []chan packet
	// parts tells each end's part; nil while the wire is whole.
	parts   atomic.Pointer[[]int]
	running sync.WaitGroup
	closed  chan struct{}

	carried, lost, cut, dropped atomic.Int64
}

// packet is one that is under way.
type packet struct {
	due  time.Time
	data []byte
}

func newWire(names []string, f Faults) *wire {
	w := &wire{names: names, faults: f, closed: make(chan struct{})}
	for range names {
		w.queues = append(w.queues, make(chan packet, maxQueue))
	}
	return w
}

func (w *wire) run() {
	for i, end := range w.ends {
		w.running.Go(func() { w.collect(i, end) })
		w.running.Go(func() { w.deliver(w.queues[i], end) })
	}
}

// close ends the goroutines and the devices.
func (w *wire) close() {
	close(w.closed)
	for _, end := range w.ends {
		end.Close()
	}
	w.running.Wait()
}

// Partition lets the named nodes reach only those of their own part. A node that
// is in none is alone with all others that are in none.
func (w *wire) Partition(parts ...[]string) {
	of := make([]int, len(w.names))
	for p, part := range parts {
		for _, name := range part {
			for i := range w.names {
				if w.names[i] == name {
					of[i] = p + 1
				}
			}
		}
	}
	w.parts.Store(&of)
}

// Heal makes the wire whole.
func (w *wire) Heal() { w.parts.Store(nil) }

// Counts is what the wire has done so far.
func (w *wire) Counts() Counts {
	return Counts{Carried: w.carried.Load(), Lost: w.lost.Load(), Cut: w.cut.Load(), Dropped: w.dropped.Load()}
}

// collect reads what a node sends until its end is closed.
func (w *wire) collect(from int, end *os.File) {
	buf := make([]byte, maxPacket)
	for {
		n, err := end.Read(buf)
		if err != nil {
			return
		}
		if to, ok := w.destination(buf[:n]); ok && w.passes(from, to) {
			w.send(to, buf[:n])
		}
	}
}

// destination reads which end an IPv4 packet is for.
func (w *wire) destination(data []byte) (to int, ok bool) {
	if len(data) < 20 || data[0]>>4 != 4 {
		return 0, false
	}
	to = int(data[19]) - 1
	return to, to >= 0 && to < len(w.ends)
}

// passes decides on one packet.
func (w *wire) passes(from, to int) bool {
	if parts := w.parts.Load(); parts != nil && (*parts)[from] != (*parts)[to] {
		w.cut.Add(1)
		return false
	}
	if rand.Float64() < w.faults.Loss {
		w.lost.Add(1)
		return false
	}
	return true
}

func (w *wire) send(to int, data []byte) {
	select {
	case w.queues[to] <- packet{due: time.Now().Add(w.faults.Delay), data: append([]byte(nil), data...)}:
	default:
		w.dropped.Add(1)
	}
}

// deliver writes packets to a node when they are due. The delay is the same for
// all, so they stay in order.
func (w *wire) deliver(queue chan packet, end *os.File) {
	for {
		select {
		case <-w.closed:
			return
		case p := <-queue:
			if early := time.Until(p.due); early > 0 {
				time.Sleep(early)
			}
			if _, err := end.Write(p.data); err == nil {
				w.carried.Add(1)
			}
		}
	}
}
