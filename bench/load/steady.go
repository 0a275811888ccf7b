package load

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Steady is the clients of one tenant. Some of their requests are refused, which is
// no failure; what is admitted is counted from the end of the warm-up on.
type Steady struct {
	// Addrs are gateways; each request goes to one of them at random.
	Addrs []string
	// Key is the tenant's API key.
	Key, Model string
	// Bytes is the length of a prompt. No two are the same.
	Bytes int
	// Rate is requests a second of all Connections together, as far as answers come
	// in time; 0 is as many as they can.
	Rate        float64
	Connections int
	Warm        time.Duration
	Timeout     time.Duration
	Seed        uint64
}

// Admitted is what became of them after the warm-up.
type Admitted struct {
	OK, Refused, Failed int64
	// Tokens is what backends reported of those that were served.
	Tokens int64
	// Began is when each of them began, since the warm-up's end.
	Began   []time.Duration
	Latency Histogram
	// Elapsed is without the warm-up.
	Elapsed time.Duration
	Err     error
}

// Between is how many of the admitted began in a part of the time.
func (a *Admitted) Between(from, to time.Duration) (n int64) {
	for _, at := range a.Began {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// Run sends until ctx ends.
func (s Steady) Run(ctx context.Context) *Admitted {
	pace := Closed{Connections: s.Connections, Rate: s.Rate}
	parts := make([]Admitted, s.Connections)
	began := time.Now()
	requests := s.requests()
	var running sync.WaitGroup
	for i := range parts {
		running.Go(func() { s.connection(ctx, pace.pace(began, i), began.Add(s.Warm), requests(), uint64(i), &parts[i]) })
	}
	<-ctx.Done()
	total := &Admitted{Elapsed: time.Since(began) - s.Warm}
	running.Wait()
	for i := range parts {
		total.add(&parts[i])
	}
	return total
}

// requests are those of Distinct with the tenant's key.
func (s Steady) requests() Requests {
	body := distinctBody(s.Model, false, s.Bytes, s.Seed)
	head := "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer " + s.Key +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return numberedRequest(append([]byte(head), body...), 1<<40)
}

func (s Steady) connection(ctx context.Context, wait func(context.Context), start time.Time, src source, number uint64, a *Admitted) {
	rng := rand.New(rand.NewPCG(s.Seed, number))
	conns := make([]*conn, len(s.Addrs))
	for i, addr := range s.Addrs {
		conns[i] = newConn(addr, s.Timeout)
		defer conns[i].close()
	}
	for ctx.Err() == nil {
		wait(ctx)
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		reply, err := conns[rng.IntN(len(conns))].do(src.next())
		if began.After(start) {
			a.take(reply, err, began, start)
		}
	}
}

func (a *Admitted) take(reply Reply, err error, began, start time.Time) {
	if err == nil && reply.Status == http.StatusTooManyRequests {
		a.Refused++
		return
	}
	if err = check(reply, err); err != nil {
		a.Failed++
		if a.Err == nil {
			a.Err = err
		}
		return
	}
	a.OK++
	a.Tokens += int64(totalTokens(reply.Body))
	a.Began = append(a.Began, began.Sub(start))
	a.Latency.Add(time.Since(began))
}

// totalTokens reads usage.total_tokens of an answer, 0 where it has none.
func totalTokens(body []byte) (n int) {
	key := []byte(`"total_tokens":`)
	at := bytes.LastIndex(body, key)
	if at < 0 {
		return 0
	}
	for _, c := range body[at+len(key):] {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func (a *Admitted) add(o *Admitted) {
	a.OK += o.OK
	a.Refused += o.Refused
	a.Failed += o.Failed
	a.Tokens += o.Tokens
	a.Began = append(a.Began, o.Began...)
	a.Latency.Merge(&o.Latency)
	if a.Err == nil {
		a.Err = o.Err
	}
}
