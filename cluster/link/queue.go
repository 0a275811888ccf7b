package link

import "sync"

// chunkSize is what is written at once, and so the most of a lower lane that may
// come between an urgent frame and its turn. It is one TLS record too.
const chunkSize = 16 << 10

// A chunk is a run of whole frames of one lane. A frame longer than chunkSize
// has one to itself.
type chunk struct {
	next   *chunk
	buf    []byte
	lane   Lane
	frames int
}

var chunks = sync.Pool{New: func() any { return &chunk{buf: make([]byte, 0, chunkSize)} }}

func newChunk(l Lane, size int) *chunk {
	if size > chunkSize {
		return &chunk{buf: make([]byte, 0, size), lane: l}
	}
	c := chunks.Get().(*chunk)
	c.lane = l
	return c
}

// free gives a chunk back. What was written stays in it: its next user overwrites
// it before anything is read.
func (c *chunk) free() {
	if cap(c.buf) != chunkSize {
		return
	}
	*c = chunk{buf: c.buf[:0]}
	chunks.Put(c)
}

// A queue holds what waits to be written, by lane. Memory is at most twice what
// its bytes say (frames of a little more than half a chunk), or a chunk a lane.
type queue struct {
	lanes [lanes]struct {
		head, tail *chunk
		bytes      int
	}
	long int // chunks longer than chunkSize
	turn uint8
}

func (q *queue) empty() bool {
	return q.lanes[Urgent].head == nil && q.lanes[Deltas].head == nil && q.lanes[Bulk].head == nil
}

// push appends a frame; size is the length of its parts together.
func (q *queue) push(l Lane, kind byte, size int, parts [][]byte) {
	lane := &q.lanes[l]
	need := frameHead + size
	if lane.tail == nil || cap(lane.tail.buf)-len(lane.tail.buf) < need {
		c := newChunk(l, need)
		if lane.tail == nil {
			lane.head = c
		} else {
			lane.tail.next = c
		}
		lane.tail = c
		if need > chunkSize {
			q.long++
		}
	}
	lane.tail.buf = appendFrame(lane.tail.buf, kind, size, parts...)
	lane.tail.frames++
	lane.bytes += need
}

// bulkShare is how often Bulk comes before Deltas where both wait: every fourth
// time, so that repair goes on while news is plenty.
const bulkShare = 4

// pop takes the chunk that is to be written next, nil if there is none.
func (q *queue) pop() *chunk {
	l := Urgent
	if q.lanes[Urgent].head == nil {
		l = Deltas
		q.turn++
		if q.lanes[Deltas].head == nil || (q.turn%bulkShare == 0 && q.lanes[Bulk].head != nil) {
			l = Bulk
		}
	}
	lane := &q.lanes[l]
	c := lane.head
	if c == nil {
		return nil
	}
	lane.head = c.next
	if lane.head == nil {
		lane.tail = nil
	}
	c.next = nil
	if len(c.buf) > chunkSize {
		q.long--
	}
	lane.bytes -= len(c.buf)
	return c
}

func (q *queue) drop() {
	for c := q.pop(); c != nil; c = q.pop() {
		c.free()
	}
}
