package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Closed is a closed loop: every connection sends its next request as soon as it
// has the answer to the one before.
type Closed struct {
	// Addr is the gateway's host and port.
	Addr        string
	Connections int
	Requests    Requests
	// Rate is how many requests all connections together send in a second, evenly,
	// as far as their answers come in time; 0 is as many as they can.
	Rate float64
	// Duration ends the loop; requests that are under way are finished.
	Duration time.Duration
	// Timeout bounds one request.
	Timeout time.Duration
}

// Result is what a loop saw.
type Result struct {
	OK, Failed int64
	Elapsed    time.Duration
	// Latency is that of the requests that went well.
	Latency Histogram
	// Again counts the requests that were sent again, since their connection had been
	// closed while it was idle.
	Again int64
	// Err is the first failure.
	Err error
}

// pauseAfterFailure is how long a connection waits after a failure, so that a gateway
// that refuses everything is not hammered.
const pauseAfterFailure = 5 * time.Millisecond

// Run returns when the duration is over, the requests are used up, or ctx ends.
func (l Closed) Run(ctx context.Context) *Result {
	ctx, cancel := context.WithTimeout(ctx, l.Duration)
	defer cancel()
	results := make([]Result, l.Connections)
	began := time.Now()
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() { l.connection(ctx, l.pace(began, i), &results[i]) })
	}
	running.Wait()
	total := &Result{Elapsed: time.Since(began)}
	for i := range results {
		total.add(&results[i])
	}
	return total
}

// pace makes what waits for the next moment to send of connection i.
func (l Closed) pace(began time.Time, i int) func(context.Context) {
	if l.Rate <= 0 {
		return func(context.Context) {}
	}
	sent := i
	return func(ctx context.Context) {
		due := began.Add(time.Duration(float64(sent) / l.Rate * float64(time.Second)))
		sent += l.Connections
		t := time.NewTimer(time.Until(due))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

func (l Closed) connection(ctx context.Context, wait func(context.Context), res *Result) {
	src := l.Requests()
	c := newConn(l.Addr, l.Timeout)
	defer func() {
		res.Again += c.again
		c.close()
	}()
	for ctx.Err() == nil {
		wait(ctx)
		request := src.next()
		if request == nil || ctx.Err() != nil {
			return
		}
		failed := res.Failed
		res.take(c, request, nil)
		if res.Failed > failed {
			time.Sleep(pauseAfterFailure)
		}
	}
}

// check makes an error of an answer that isn't 200.
func check(reply Reply, err error) error {
	if err == nil && reply.Status != 200 {
		return fmt.Errorf("status %d: %.200s", reply.Status, reply.Body)
	}
	return err
}

func (r *Result) fail(err error) {
	r.Failed++
	if r.Err == nil {
		r.Err = err
	}
}

// Merge adds what another loop saw at the same time.
func (r *Result) Merge(o *Result) {
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	r.add(o)
}

func (r *Result) add(o *Result) {
	r.OK += o.OK
	r.Failed += o.Failed
	r.Again += o.Again
	r.Latency.Merge(&o.Latency)
	if r.Err == nil {
		r.Err = o.Err
	}
}
