package world

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// answerTime bounds one request, in real time.
const answerTime = 30 * time.Second

// player lets conversations happen in real time, each turn at a random node.
type player struct {
	addrs   []string
	speedup float64
	client  *http.Client
	began   time.Time
}

// play returns when all conversations are over, or with the first error.
func play(ctx context.Context, list []conversation, addrs []string, speedup float64) (*recording, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: len(list)}
	defer transport.CloseIdleConnections()
	p := &player{addrs: addrs, speedup: speedup, client: &http.Client{Transport: transport, Timeout: answerTime}, began: time.Now()}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	rec := &recording{talks: make([]talk, len(list))}
	var going sync.WaitGroup
	for i := range list {
		rec.talks[i].start = list[i].start
		going.Go(func() {
			if err := p.converse(ctx, &list[i], &rec.talks[i]); err != nil {
				stop(fmt.Errorf("conversation %d, turn %d: %w", i, len(rec.talks[i].exchanges), err))
			}
		})
	}
	going.Wait()
	rec.took = p.stretch(time.Since(p.began))
	return rec, context.Cause(ctx)
}

// stretch turns a time of the clock into one of the engines.
func (p *player) stretch(d time.Duration) time.Duration { return time.Duration(float64(d) * p.speedup) }

// converse lets one conversation happen and records it.
func (p *player) converse(ctx context.Context, c *conversation, rec *talk) error {
	said := []message{{"system", c.system}}
	heard := p.began.Add(p.shrink(c.start))
	for _, t := range c.turns {
		due := heard.Add(p.shrink(t.think))
		if err := sleepUntil(ctx, due); err != nil {
			return err
		}
		said = append(said, message{"user", t.question})
		body, err := body(said, t.answerTokens)
		if err != nil {
			return err
		}
		late := time.Since(due)
		a, err := ask(ctx, p.client, p.addrs[c.way.IntN(len(p.addrs))], body)
		if err != nil {
			return err
		}
		heard = time.Now()
		said = append(said, message{"assistant", a.text})
		a.first = p.stretch(a.first)
		rec.exchanges = append(rec.exchanges, exchange{answer: *a, body: body, think: t.think, late: p.stretch(late)})
	}
	return nil
}

func (p *player) shrink(d time.Duration) time.Duration { return time.Duration(float64(d) / p.speedup) }

func sleepUntil(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
