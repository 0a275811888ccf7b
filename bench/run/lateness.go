package main

import (
	"context"
	"sync"
	"time"
)

// lateness watches how late the machine wakes a sleeper: where that is as much
// as what is promised, a broken promise says nothing about the gateway.
type lateness struct {
	stop    context.CancelFunc
	running sync.WaitGroup
	worst   time.Duration
}

func watchLateness(ctx context.Context) *lateness {
	l := &lateness{}
	ctx, l.stop = context.WithCancel(ctx)
	l.running.Go(func() {
		const nap = 5 * time.Millisecond
		for ctx.Err() == nil {
			began := time.Now()
			time.Sleep(nap)
			l.worst = max(l.worst, time.Since(began)-nap)
		}
	})
	return l
}

// end returns the worst that was seen.
func (l *lateness) end() time.Duration {
	l.stop()
	l.running.Wait()
	return l.worst
}
