package load

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Talk plays a script. After each turn a conversation waits behind all others,
// so that all of them are under way at the same time.
type Talk struct {
	// Addrs are the gateways; each turn goes to one of them at random.
	Addrs []string
	Script
	// Connections is how many turns are asked at the same time.
	Connections int
	Timeout     time.Duration
}

// Run plays the script to its end, or until ctx ends. A conversation whose turn
// fails is not continued.
func (t Talk) Run(ctx context.Context) *Result {
	waiting := make(chan *conversation, t.Conversations)
	var open sync.WaitGroup
	for id := range t.Conversations {
		open.Add(1)
		waiting <- newConversation(&t.Script, id)
	}
	results := make([]Result, t.Connections)
	began := time.Now()
	var running sync.WaitGroup
	for i := range results {
		running.Go(func() { t.connection(ctx, waiting, &open, &results[i]) })
	}
	open.Wait()
	close(waiting)
	running.Wait()
	total := &Result{Elapsed: time.Since(began)}
	for i := range results {
		total.add(&results[i])
	}
	return total
}

func (t Talk) connection(ctx context.Context, waiting chan *conversation, open *sync.WaitGroup, res *Result) {
	conns := make([]*conn, len(t.Addrs))
	for i, addr := range t.Addrs {
		conns[i] = newConn(addr, t.Timeout)
		defer conns[i].close()
	}
	for c := range waiting {
		began := time.Now()
		err := ctx.Err()
		if err == nil {
			err = c.converse(conns[c.way.IntN(len(conns))])
		}
		if err != nil {
			res.fail(err)
			open.Done()
			continue
		}
		res.OK++
		res.Latency.Add(time.Since(began))
		if c.over() {
			open.Done()
			continue
		}
		waiting <- c // never blocks: there is room for all
	}
}

// converse asks the next question and takes in the answer.
func (c *conversation) converse(conn *conn) error {
	reply, err := conn.do(Request(c.ask()))
	if err = check(reply, err); err != nil {
		return err
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(reply.Body, &answer); err != nil || len(answer.Choices) == 0 {
		return fmt.Errorf("read answer %.200s: %w", reply.Body, err)
	}
	c.hear(answer.Choices[0].Message.Content)
	return nil
}
