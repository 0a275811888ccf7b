package prompt

import (
	"bytes"
	"context"
	"time"

	"kvca/state/cbr"
)

// flight is a search for one prompt's tokens, which any number of requests wait
// for. It goes on when none does any more, as long as there is room for it.
type flight struct {
	key       uint64
	name      string
	endpoint  cbr.Endpoint
	body      []byte   // our own copy
	limit     int      // token ids
	media     int      // length of a body that has media, else 0
	engines   []Engine // those to ask, in turn
	plan      []way
	model     *model
	ctx       context.Context
	cancel    context.CancelFunc
	begin     time.Time
	bodyBytes int64

	// Of the service's lock:
	waiters    int
	background bool

	// What came of it, once done is closed: one of the two.
	done    chan struct{}
	entry   *entry
	failure *Failure
}

// join returns the flight for a request, a new one if there is none yet, with the
// caller among its waiters.
func (s *Service) join(r *Request) (*flight, *Failure) {
	f, begun, failure := s.register(r)
	if !begun {
		return f, failure
	}
	// Only fly reads these, so those who have joined meanwhile don't mind.
	f.body, f.engines = bytes.Clone(r.Body), turns(r.Key, r.Engines)
	go func() {
		defer s.wg.Done()
		s.fly(f)
	}()
	return f, nil
}

// register finds or enters a flight. One that is new is counted, and the caller
// has to begin it.
func (s *Service) register(r *Request) (f *flight, begun bool, failure *Failure) {
	local := s.cfg.Local(r.Model) != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[r.Key]; f != nil && r.Key != 0 {
		f.waiters++
		return f, false, nil
	}
	m := s.model(r.Model)
	plan := m.plan(time.Now(), s.cfg.RetryAfter, local, s.cfg.Preference)
	if failure := s.refuse(r, m, plan); failure != nil {
		return nil, false, failure
	}
	f = s.newFlight(r, m, plan)
	if r.Key != 0 {
		s.flights[r.Key] = f
	}
	s.bodyBytes += f.bodyBytes
	s.inFlight++
	s.wg.Add(1)
	return f, true, nil
}

// refuse says why no flight can be begun; nil if one can. The lock is held.
func (s *Service) refuse(r *Request, m *model, plan []way) *Failure {
	problem := m.mistaken()
	switch {
	case s.closed:
		return &Failure{EngineError, errClosed}
	case len(plan) == 0 && problem != "":
		return failed(Mismatch, "model %s: %s", r.Model, problem)
	case len(plan) == 0:
		return failed(NoTokenizer, "model %s: no engine has a tokenizer to ask", r.Model)
	case len(r.Engines) == 0 && plan[0] != wayLocal:
		return failed(NoTokenizer, "model %s: no engine to ask", r.Model)
	case s.bodyBytes+int64(len(r.Body)) > s.cfg.MaxBodyBytes:
		return failed(Overloaded, "calls in flight hold %d bytes: want at most %d", s.bodyBytes, s.cfg.MaxBodyBytes)
	}
	return nil
}

// newFlight is a flight with its first waiter, yet without what is copied.
func (s *Service) newFlight(r *Request, m *model, plan []way) *flight {
	f := &flight{
		key: r.Key, name: r.Model, endpoint: r.Endpoint, limit: idLimit(r), plan: plan, model: m, begin: time.Now(),
		bodyBytes: int64(len(r.Body)), waiters: 1, done: make(chan struct{}),
	}
	f.ctx, f.cancel = context.WithTimeout(s.ctx, s.cfg.CallTimeout)
	return f
}

// idLimit is how many token ids a request may have: most tokens have several bytes,
// and a template adds some of its own.
func idLimit(r *Request) int { return 2*int(max(r.Bytes, int64(len(r.Body)))) + 4096 }

// wait waits for a flight as long as the budget and ctx allow.
func (s *Service) wait(ctx context.Context, f *flight, budget time.Duration) *Failure {
	timer := time.NewTimer(budget)
	defer timer.Stop()
	select {
	case <-f.done:
	case <-timer.C:
		if !s.leave(f, true) {
			return failed(Deadline, "the tokens were not there within %v", budget)
		}
	case <-ctx.Done():
		if !s.leave(f, false) {
			return &Failure{Deadline, ctx.Err()}
		}
	}
	return f.failure
}

// leave takes a waiter off a flight and reports whether the flight is done after
// all. One that nobody waits for goes on if it is worth it: its tokens serve the
// next turn.
func (s *Service) leave(f *flight, worth bool) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-f.done:
		return true
	default:
	}
	f.waiters--
	switch {
	case f.waiters > 0 || f.background:
	case worth && f.key != 0 && s.background < s.cfg.MaxBackground:
		f.background = true
		s.background++
	default:
		s.forget(f)
		f.cancel()
	}
	return false
}

// forget lets no more requests join. The lock is held.
func (s *Service) forget(f *flight) {
	if s.flights[f.key] == f {
		delete(s.flights, f.key)
	}
}

func (s *Service) fly(f *flight) {
	defer f.cancel()
	e, failure := s.search(f)
	if e != nil {
		s.cache.put(f.key, e)
	}
	s.count.flight(time.Since(f.begin))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(f)
	s.bodyBytes -= f.bodyBytes
	s.inFlight--
	if f.background {
		s.background--
	}
	f.entry, f.failure, f.body = e, failure, nil
	close(f.done)
}
