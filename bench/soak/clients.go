package soak

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what a client does.
type Kind int

// The kinds of requests.
const (
	Chat Kind = iota
	Stream
	FollowUp
	Embedding
	Large
	SlowUpload
	Leaver
	Garbage
	kinds
)

// String is the kind's name in tables.
func (k Kind) String() string {
	return [...]string{"chat", "stream", "follow-up", "embedding", "400 kB", "slow upload", "leaver", "garbage"}[k]
}

// shares are how often each kind comes, in hundredths.
var shares = [kinds]int{Chat: 26, Stream: 26, FollowUp: 18, Embedding: 10, Large: 4, SlowUpload: 3, Leaver: 9, Garbage: 4}

func draw(r *rand.Rand) Kind {
	n := r.IntN(100)
	for k, share := range shares {
		if n -= share; n < 0 {
			return Kind(k)
		}
	}
	return Chat
}

// requestTime bounds one request; a fault that stops something lasts much shorter.
const requestTime = 40 * time.Second

// Clients are the traffic. Their requests go to nodes that are ready.
type Clients struct {
	Model string
	// Ready are the addresses of nodes, Why says what keeps others from it; Names
	// tells whose an address is.
	Ready func() []string
	Why   func() error
	Names map[string]string
	// Rate is requests a second of all Workers together.
	Rate    float64
	Workers int
	Seed    uint64
	History *History

	transport *http.Transport
	draw      func(*rand.Rand) Kind // nil for any kind, by their shares
	// sent and failed count by kind; again counts those that were sent again since
	// their connection had been closed while it was idle.
	sent, failed [kinds]atomic.Int64
	again        atomic.Int64
	// asked are the last chats that were answered.
	mu     sync.Mutex
	asked  []question
	serial atomic.Int64
}

// question is a chat that was answered.
type question struct {
	at   time.Time
	body []byte
}

// maxAsked bounds those that are remembered: two minutes of chats at a usual rate.
const maxAsked = 4096

func (c *Clients) answered(body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == maxAsked {
		c.asked = append(c.asked[:0], c.asked[maxAsked/2:]...)
	}
	c.asked = append(c.asked, question{time.Now(), body})
}

// Asked are n of the chats that were answered within the last time, spread over it.
func (c *Clients) Asked(within time.Duration, n int) (bodies [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := c.asked
	for len(late) > 0 && time.Since(late[0].at) > within {
		late = late[1:]
	}
	for i := range min(n, len(late)) {
		bodies = append(bodies, late[i*len(late)/min(n, len(late))].body)
	}
	return bodies
}

// Counts is what became of requests of one kind.
type Counts struct{ Sent, Failed int64 }

// Run sends requests until ctx ends, and lets what is under way end.
func (c *Clients) Run(ctx context.Context) {
	if c.draw == nil {
		c.draw = draw
	}
	c.transport = &http.Transport{MaxIdleConnsPerHost: c.Workers, DisableCompression: true}
	defer c.transport.CloseIdleConnections()
	began := time.Now()
	var running sync.WaitGroup
	for i := range c.Workers {
		running.Go(func() { c.worker(ctx, began, i) })
	}
	running.Wait()
}

// worker sends one request after the other, at its share of the rate as far as
// their answers come in time.
func (c *Clients) worker(ctx context.Context, began time.Time, number int) {
	w := &worker{Clients: c, rand: rand.New(rand.NewPCG(c.Seed, uint64(number)))}
	every := time.Duration(float64(c.Workers) / c.Rate * float64(time.Second))
	due := began.Add(time.Duration(number) * every / time.Duration(c.Workers))
	for {
		if now := time.Now(); due.Before(now) {
			due = now // what was missed is not made up for
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		due = due.Add(every)
		w.one()
	}
}

// Counts are those of all kinds, by name.
func (c *Clients) Counts() map[string]Counts {
	all := map[string]Counts{}
	for k := range kinds {
		all[k.String()] = Counts{c.sent[k].Load(), c.failed[k].Load()}
	}
	return all
}

// Again counts the requests that were sent again on a new connection.
func (c *Clients) Again() int64 { return c.again.Load() }

// Kinds are the names of all kinds in order.
func Kinds() []string {
	names := make([]string, kinds)
	for k := range kinds {
		names[k] = k.String()
	}
	return names
}
