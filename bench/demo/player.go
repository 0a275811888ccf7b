package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// Bounds of a player's waits.
const (
	turnLimit = time.Minute     // of one turn, from its request to its last byte
	endGrace  = 5 * time.Second // for turns that are under way when the player is to end
)

// Player holds a script's conversations with one gateway of one or more nodes: in
// each session one after another, all sessions side by side.
type Player struct {
	// URLs are where the gateway's nodes take requests; each turn goes to one of
	// them at random. They have their debug headers on.
	URLs   []string
	Script Script
	// Sessions is how many conversations there are at a time.
	Sessions int
	// Tally is where results go.
	Tally *Tally

	client *http.Client
}

// Run plays until ctx ends, lets turns that are under way end within a few
// seconds, and returns when nothing is left. What has to be cut is not counted.
func (p *Player) Run(ctx context.Context) {
	transport := &http.Transport{MaxIdleConns: p.Sessions, MaxIdleConnsPerHost: p.Sessions, IdleConnTimeout: turnLimit}
	defer transport.CloseIdleConnections()
	p.client = &http.Client{Transport: transport}

	turns, cut := context.WithCancel(context.WithoutCancel(ctx))
	var sessions, watch sync.WaitGroup
	watch.Go(func() { cutLate(ctx, turns, cut) })
	for i := range p.Sessions {
		sessions.Go(func() { p.session(ctx, turns, i) })
	}
	sessions.Wait()
	cut()
	watch.Wait()
}

// cutLate cuts turns that go on for too long after ctx has ended. It returns when
// they are cut, by itself or by others.
func cutLate(ctx, turns context.Context, cut context.CancelFunc) {
	select {
	case <-ctx.Done():
	case <-turns.Done():
		return
	}
	wait(turns, endGrace)
	cut()
}

// session holds one conversation after another. It starts somewhere within the
// first pause, so that sessions don't go in step.
func (p *Player) session(ctx, turns context.Context, id int) {
	longest := time.Duration(p.Script.ThinkMillis.Max) * time.Millisecond
	if !wait(ctx, longest*time.Duration(id)/time.Duration(p.Sessions)) {
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		p.converse(ctx, turns, newTalk(&p.Script, id, n))
	}
}

// converse holds one conversation. One that has an error is not continued.
func (p *Player) converse(ctx, turns context.Context, t *talk) {
	for !t.over() {
		err := p.turn(turns, t)
		if !wait(ctx, t.pause()) || err != nil {
			return
		}
	}
}

// turn asks one question, counts what came of it, and takes in the answer.
func (p *Player) turn(turns context.Context, t *talk) error {
	ctx, cancel := context.WithTimeoutCause(turns, turnLimit, fmt.Errorf("no whole answer within %v", turnLimit))
	defer cancel()
	a, err := chat(ctx, p.client, p.URLs[rand.IntN(len(p.URLs))], t.ask())
	if turns.Err() != nil {
		return turns.Err()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		p.Tally.Add(Result{Err: err})
		return err
	}
	p.Tally.Add(Result{
		Backend: a.backend, FollowUp: t.backend != "", Kept: a.backend == t.backend,
		Prompt: a.prompt, Cached: a.cached, TTFT: a.ttft,
	})
	t.hear(a)
	return nil
}

// wait is whether ctx lasted for d.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
