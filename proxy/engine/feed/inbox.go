package feed

import (
	"context"
	"sync"
)

// kind is what an item of the inbox is.
type kind uint8

const (
	liveBatch kind = iota
	replayBatch
	replayEnd
	replayFailed
	connectionUp
	connectionDown
	connectionFailed
	otherEngine
	malformed
	lossMark // live batches were dropped here
	voidMark
	resyncMark
)

// item is one input of the machine, as the sockets' goroutines leave it.
type item struct {
	kind  kind
	batch batch
	id    uint64 // of the replay
	err   error
}

// mostKept is how many items' room is kept after a rush.
const mostKept = 1024

func (i *item) size() int { return len(i.batch.payload) + perBatch }

// inbox takes what sockets say to the worker. Live batches beyond max bytes are
// dropped, and a mark left; a replay's reader waits. One item always fits, however
// long it is.
type inbox struct {
	max  int
	wake chan struct{} // holds one token if there is something to take

	mu      sync.Mutex
	room    chan struct{} // closed and renewed when items were taken
	items   []item
	spare   []item
	live    int // bytes of live batches in items
	replay  int
	dropped uint64
	lossy   bool // the last live batch was dropped
}

func newInbox(maxBytes int) *inbox {
	return &inbox{max: maxBytes, wake: make(chan struct{}, 1), room: make(chan struct{})}
}

// put adds what is small and must not be lost. Connections and marks come no
// faster than sockets are opened.
func (b *inbox) put(i item) {
	b.mu.Lock()
	b.add(i)
	b.mu.Unlock()
	b.poke()
}

// putLive adds a live batch, or drops it. It never waits.
func (b *inbox) putLive(batch batch) {
	i := item{kind: liveBatch, batch: batch}
	b.mu.Lock()
	switch {
	case b.live > 0 && b.live+i.size() > b.max:
		b.dropped++
		if !b.lossy {
			b.lossy = true
			b.add(item{kind: lossMark})
		}
	default:
		b.lossy = false
		b.live += i.size()
		b.add(i)
	}
	b.mu.Unlock()
	b.poke()
}

// putMalformed adds word of a message that was none, where it is not among others.
func (b *inbox) putMalformed(err error) {
	b.mu.Lock()
	if n := len(b.items); n == 0 || b.items[n-1].kind != malformed {
		b.add(item{kind: malformed, err: err})
	}
	b.mu.Unlock()
	b.poke()
}

// putReplay adds a batch of a replay, once there is room.
func (b *inbox) putReplay(ctx context.Context, i item) error {
	for {
		b.mu.Lock()
		if b.replay == 0 || b.replay+i.size() <= b.max {
			b.replay += i.size()
			b.add(i)
			b.mu.Unlock()
			b.poke()
			return nil
		}
		room := b.room
		b.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *inbox) add(i item) { b.items = append(b.items, i) }

func (b *inbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take is all there is, valid until the next call, and how many batches were
// dropped until now.
func (b *inbox) take() ([]item, uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	clear(b.spare) // payloads of the last take
	if cap(b.spare) > mostKept {
		b.spare = nil
	}
	b.items, b.spare = b.spare[:0], items
	if b.replay > 0 {
		close(b.room)
		b.room = make(chan struct{})
	}
	b.live, b.replay = 0, 0
	return items, b.dropped
}
