package kvevent

import (
	"errors"
	"fmt"
	"slices"
)

// Decoder reads batches. The zero value is ready; it serves one goroutine.
type Decoder struct {
	batch Batch
	names names

	// What the batch's events consist of, one after the other. A slice that grows
	// leaves its old memory to the events before.
	hashes []uint64
	tokens []uint32
	extras []uint64
	counts []int

	event  event
	number int // of the event that is being read, from 0
}

// leastEvent is how many bytes an event has at least, a removal of nothing.
const leastEvent = 15

// marks are where an event's part of the decoder's slices begins.
type marks struct{ hashes, tokens, extras, counts int }

// Decode reads one payload. The batch is valid until the next call. An error means
// that there is no batch, and so no event can be read.
func (d *Decoder) Decode(payload []byte) (*Batch, error) {
	d.reset()
	if len(payload) > MaxBatch {
		return nil, fmt.Errorf("decode event batch: %d bytes, want %d at most", len(payload), MaxBatch)
	}
	n, b, ok := arrayHead(payload)
	if !ok || n < 2 {
		return nil, errors.New("decode event batch: want an array [time, events, rank]; the publisher may be no engine's")
	}
	if d.batch.Time, b, ok = seconds(b); !ok {
		return nil, errors.New("decode event batch: the first element is no time")
	}
	events, b, ok := arrayHead(b)
	if !ok {
		return nil, errors.New("decode event batch: the second element is no array of events, or the message was cut")
	}
	if b, ok = d.events(b, events); ok && n > 2 {
		d.rank(b)
	}
	return &d.batch, nil
}

func (d *Decoder) reset() {
	last := d.batch.Events
	clear(last) // of references to strings and to memory that was left behind
	d.batch = Batch{Events: reuse(last)}
	d.hashes, d.tokens = reuse(d.hashes), reuse(d.tokens)
	d.extras, d.counts = reuse(d.extras), reuse(d.counts)
}

// events reads n events; false if the end of one could not be found.
func (d *Decoder) events(b []byte, n int) (rest []byte, ok bool) {
	d.batch.Events = slices.Grow(d.batch.Events, min(n, MaxEvents, len(b)/leastEvent))
	for d.number = 0; d.number < n; d.number++ {
		if d.number == MaxEvents {
			d.damaged(n-d.number, "is beyond the most that a batch may have")
			return b, false
		}
		if b, ok = d.one(b); !ok {
			d.damaged(n-d.number, "has no end: the message was cut, or is not MessagePack")
			return b, false
		}
	}
	return b, true
}

// one reads one event and adds it to the batch. What a broken one has left in the
// slices is nobody's.
func (d *Decoder) one(b []byte) (rest []byte, ok bool) {
	before := marks{len(d.hashes), len(d.tokens), len(d.extras), len(d.counts)}
	d.event = event{group: -1}
	rest, ok = d.read(b)
	if !ok {
		return b, false
	}
	outcome := d.event.outcome()
	if outcome == whole && !d.add(before) {
		outcome = broken
	}
	switch outcome {
	case broken:
		d.damaged(1, d.event.problem())
	case unknown:
		d.batch.Skipped++
	}
	return rest, true
}

func (d *Decoder) damaged(events int, problem string) {
	if d.batch.Damaged == 0 {
		d.batch.Problem = fmt.Sprintf("event %d of the batch %s", d.number, problem)
	}
	d.batch.Damaged += events
}

// rank reads the batch's third element. One that is no rank is none.
func (d *Decoder) rank(b []byte) {
	if rank, _, ok := count(b, -1); ok && rank >= 0 {
		d.batch.Rank, d.batch.HasRank = rank, true
	}
}
