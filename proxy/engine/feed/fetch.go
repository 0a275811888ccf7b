package feed

import (
	"bytes"
	"context"
	"fmt"

	"kvca/proxy/engine/zmtp"
)

// fetcher asks for replays, one at a time. It belongs to the worker; its goroutine
// ends with the replay.
type fetcher struct {
	ctx    context.Context
	config *Config
	inbox  *inbox
	cancel context.CancelFunc // of the newest
	done   chan struct{}      // closed when it has ended, and all before it
}

// ask begins a replay; what comes of it goes to the inbox under id.
func (f *fetcher) ask(id, from uint64) {
	f.hangUp()
	ctx, cancel := context.WithCancel(f.ctx)
	before, done := f.done, make(chan struct{})
	f.cancel, f.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		if before != nil {
			<-before
		}
		if err := f.fetch(ctx, id, from); err != nil {
			f.inbox.put(item{kind: replayFailed, id: id, err: err})
			return
		}
		f.inbox.put(item{kind: replayEnd, id: id})
	}()
}

func (f *fetcher) hangUp() {
	if f.cancel != nil {
		f.cancel()
	}
}

// close ends the replay and waits for it.
func (f *fetcher) close() {
	f.hangUp()
	if f.done != nil {
		<-f.done
	}
}

// fetch returns nil once the end marker has come. Whether it takes too long is the
// machine's to say, which ends ctx.
func (f *fetcher) fetch(ctx context.Context, id, from uint64) error {
	conn, err := zmtp.Dial(ctx, zmtp.Config{Endpoint: f.config.Replay, Logger: f.config.Logger}, "DEALER")
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Send(question(from)...); err != nil {
		return fmt.Errorf("ask %s for a replay: %w", f.config.Replay, err)
	}
	for {
		frames, err := conn.Receive()
		if err != nil {
			return fmt.Errorf("replay from %s: %w", f.config.Replay, err)
		}
		seq, payload, end, err := reply(frames)
		if end || err != nil {
			return err
		}
		i := item{kind: replayBatch, id: id, batch: newBatch(seq, bytes.Clone(payload))}
		if err := f.inbox.putReplay(ctx, i); err != nil {
			return err
		}
	}
}
