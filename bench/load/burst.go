package load

import (
	"context"
	"sync"
	"time"
)

// Burst sends all its requests at the same moment, each on a connection of its
// own that is made before.
type Burst struct {
	// Addrs are gateways, which get the requests in turns.
	Addrs []string
	// Bodies are the requests.
	Bodies [][]byte
	// Timeout bounds one request.
	Timeout time.Duration
}

// Run returns when every request has its answer.
func (b Burst) Run(ctx context.Context) *Result {
	results := make([]Result, len(b.Bodies))
	start := make(chan struct{})
	var connected, running sync.WaitGroup
	connected.Add(len(b.Bodies))
	for i, body := range b.Bodies {
		running.Go(func() {
			c := newConn(b.Addrs[i%len(b.Addrs)], b.Timeout)
			defer c.close()
			request := Request(body)
			err := c.open()
			connected.Done()
			<-start
			if err == nil {
				err = ctx.Err()
			}
			results[i].take(c, request, err)
		})
	}
	connected.Wait()
	began := time.Now()
	close(start)
	running.Wait()
	total := &Result{Elapsed: time.Since(began)}
	for i := range results {
		total.add(&results[i])
	}
	return total
}

// take sends a request, unless it has failed already, and counts what comes of it.
func (r *Result) take(c *conn, request []byte, err error) {
	began := time.Now()
	if err == nil {
		var reply Reply
		reply, err = c.do(request)
		err = check(reply, err)
	}
	if err != nil {
		r.fail(err)
		return
	}
	r.OK++
	r.Latency.Add(time.Since(began))
}
