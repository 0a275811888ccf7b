package cluster

import (
	"context"
	"sync"
)

// workers are the goroutines that belong to peers: one applies what a peer tells,
// one answers its digests, one applies what it tells
// of its sources. They live from the peer's first link until the peer is
// forgotten.
type workers struct {
	sync.WaitGroup
	mu   sync.Mutex
	ctx  context.Context // of Run; nil before
	stop map[*peer]context.CancelFunc
}

func (w *workers) begin(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx, w.stop = ctx, make(map[*peer]context.CancelFunc)
}

// startWorkers gives a peer its workers, once.
func (c *Cluster) startWorkers(p *peer) {
	w := &c.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || w.ctx.Err() != nil || w.stop[p] != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.stop[p] = cancel
	w.Go(func() { c.work(ctx, p) })
	w.Go(func() { c.answerQuestions(ctx, p) })
	if c.index != nil {
		w.Go(func() { c.index.work(ctx, p) })
	}
}

func (w *workers) end(p *peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.stop[p]; cancel != nil {
		cancel()
		delete(w.stop, p)
	}
}

// forgetGone drops peers that are no members, have no link and whose lease is
// over, so that their numbers can be used again, first of all by members that
// were left out.
func (c *Cluster) forgetGone() {
	c.meeting.Lock()
	defer c.meeting.Unlock()
	freed := false
	live := make(map[string]bool)
	for _, m := range *c.live.Load() {
		live[m.Name] = true
	}
	for _, p := range c.peers.all() {
		p.mu.Lock()
		leased := p.leased
		p.mu.Unlock()
		if live[p.name] || leased || p.connected() != nil {
			continue
		}
		c.workers.end(p)
		c.peers.forget(p)
		c.cfg.Ledger.Drop(p.holder)
		c.quotas.drop(p)
		c.metrics.divergence.DeleteLabelValues(p.name)
		freed = true
	}
	if freed && len(c.leftOut) > 0 {
		c.takeIn()
	}
}
