package prompt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// trial is what a way made of the probes.
type trial struct {
	ids    [][]uint32 // by probe, nil where the engine would not
	absent error      // it has no such way
	err    error      // it could not be tried
	odd    string     // the probes that it would not
}

func (t *trial) ok() bool { return t.absent == nil && t.err == nil }

// SelfTest asks for the tokens of a few probes by every way, and takes those that
// agree: with the engine's renderer, or where there is none with the first of its
// tokenizers. A way that was thrown out is taken in again if it agrees. It returns
// within Config.SelfTestTimeout, of which each way has its share.
func (s *Service) SelfTest(ctx context.Context, name string, engines []Engine) Report {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	m := s.model(name)
	var trials [ways]*trial
	reference := ways
	for w := range ways {
		if w == wayLocal && s.cfg.Local(name) == nil || (w == wayLlamaCPP || w == wayTGI) && reference != ways {
			continue // there is no such way, or no need to look for it
		}
		trials[w] = s.try(ctx, w, name, engines)
		if w != wayLocal && trials[w].ok() && (reference == ways || m.isDropped(reference) && !m.isDropped(w)) {
			reference = w
		}
	}
	m.judge(trials, reference, time.Now().Add(s.cfg.RetryAfter))
	return s.report(name, time.Now())
}

// try asks one way for all probes.
func (s *Service) try(ctx context.Context, w way, name string, engines []Engine) *trial {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SelfTestTimeout/time.Duration(ways))
	defer cancel()
	t := &trial{ids: make([][]uint32, len(probes))}
	for i := range probes {
		p := &probes[i]
		f := &flight{name: name, endpoint: p.endpoint, body: p.body(name), limit: 1 << 16, engines: engines[:min(len(engines), maxTurns)]}
		got, err := s.ask(ctx, w, f)
		switch {
		case err == nil:
			t.ids[i] = got.tokens
		case i == 0 && w != wayLocal && meansAbsent(err, false):
			t.absent = err
			return t
		case i > 0 && refused(err) || w == wayLocal:
			t.odd += fmt.Sprintf("; not tested: %s (%v)", p.name, err)
		default:
			t.err = fmt.Errorf("probe %s: %w", p.name, err)
			return t
		}
	}
	return t
}

// refused reports whether an engine would not answer such a request. Some say so
// with a 500 (llama.cpp's, of tools that it was not started for).
func refused(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.status <= http.StatusInternalServerError || errors.Is(err, errNoTokens)
}

// against compares two ways by the probes that both took, and returns what is
// wrong; compared is how many there were.
func (t *trial) against(reference *trial) (problem string, compared int) {
	for i, want := range reference.ids {
		got := t.ids[i]
		if want == nil || got == nil {
			continue
		}
		compared++
		if problem == "" && !slices.Equal(got, want) {
			problem = "probe " + probes[i].name + ": " + differ(got, want)
		}
	}
	return problem, compared
}

// judge takes the trials' outcome over.
func (m *model) judge(trials [ways]*trial, reference way, retry time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w, t := range trials {
		s := &m.ways[w]
		switch {
		case t == nil:
		case t.absent != nil:
			s.works, s.absent, s.problem = false, retry, t.absent.Error()
		case t.err != nil:
			s.note(t.err.Error())
		case reference == ways: // a local way, with nothing to hold it against
			s.note("no engine to hold it against" + t.odd)
		default:
			problem, compared := t.against(trials[reference])
			s.judge(way(w), t, problem, compared == 0 || way(w) == wayLocal && compared < reference.tried(trials))
		}
	}
}

// tried is how many probes the reference took.
func (w way) tried(trials [ways]*trial) (n int) {
	for _, ids := range trials[w].ids {
		if ids != nil {
			n++
		}
	}
	return n
}

// judge of one way: what is not the same is thrown out; a local way has to take
// every probe that the engine took.
func (s *wayState) judge(w way, t *trial, problem string, short bool) {
	switch {
	case problem != "":
		s.drop(problem)
	case short:
		s.proven = false
		s.note("not comparable" + t.odd)
	default:
		s.restore()
		s.works, s.proven = true, w == wayLocal
		if t.odd != "" {
			s.problem = t.odd[2:]
		}
	}
}

// note says why a way was not tested, unless it has a graver problem.
func (s *wayState) note(problem string) {
	if !s.dropped {
		s.problem = problem
	}
}

func (m *model) isDropped(w way) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ways[w].dropped
}
