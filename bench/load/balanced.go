package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Balanced is clients behind a load balancer that keeps to the nodes which say that
// they are ready. No request is sent twice: what fails has failed, but for one whose
// connection was closed while it was idle, which any client sends again.
type Balanced struct {
	// Ready are the nodes that may be sent requests now.
	Ready func() []string
	// Connections is how many requests may be under way at the same time.
	Connections int
	// Requests makes what each of them sends.
	Requests Requests
	// Rate is how many are sent a second, evenly.
	Rate    float64
	Timeout time.Duration
}

// errNoNode means that no node was ready when a request was due.
var errNoNode = errors.New("no node is ready")

// errCut means that a stream had no end of its own.
var errCut = errors.New("the stream ended before it was complete")

// Run sends until ctx ends, and lets what is under way end.
func (l Balanced) Run(ctx context.Context) *Result {
	pace := Closed{Connections: l.Connections, Rate: l.Rate}
	results := make([]Result, l.Connections)
	began := time.Now()
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() { l.connection(ctx, pace.pace(began, i), uint64(i), &results[i]) })
	}
	running.Wait()
	total := &Result{Elapsed: time.Since(began)}
	for i := range results {
		total.add(&results[i])
	}
	return total
}

func (l Balanced) connection(ctx context.Context, wait func(context.Context), number uint64, res *Result) {
	src, rng := l.Requests(), rand.New(rand.NewPCG(number, 7))
	conns := make(map[string]*conn)
	defer func() {
		for _, c := range conns {
			res.Again += c.again
			c.close()
		}
	}()
	for ctx.Err() == nil {
		wait(ctx)
		request := src.next()
		if request == nil || ctx.Err() != nil {
			return
		}
		ready := l.Ready()
		if len(ready) == 0 {
			res.fail(errNoNode)
			continue
		}
		addr := ready[rng.IntN(len(ready))]
		if conns[addr] == nil {
			conns[addr] = newConn(addr, l.Timeout)
		}
		began := time.Now()
		reply, err := conns[addr].do(request)
		if err = whole(reply, check(reply, err)); err != nil {
			res.fail(fmt.Errorf("%s at %s: %w", time.Now().Format("15:04:05.000"), addr, err))
			continue
		}
		res.OK++
		res.Latency.Add(time.Since(began))
	}
}

// whole makes an error of a stream that lacks its end.
func whole(reply Reply, err error) error {
	if err == nil && bytes.HasPrefix(reply.Body, []byte("data:")) && !bytes.Contains(reply.Body, []byte("data: [DONE]")) {
		return errCut
	}
	return err
}

// Mixed takes one request of each in turn, until one has none left.
func Mixed(kinds ...Requests) Requests {
	return func() source {
		m := &mixed{}
		for _, k := range kinds {
			m.sources = append(m.sources, k())
		}
		return m
	}
}

type mixed struct {
	sources []source
	turn    int
}

func (m *mixed) next() []byte {
	m.turn++
	return m.sources[m.turn%len(m.sources)].next()
}
