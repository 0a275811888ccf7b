package prompt

import (
	"cmp"
	"fmt"
	"time"
)

// Report is how a model's tokens are found.
type Report struct {
	Model string
	// Way is the way that requests take: render, tokenize, llamacpp, tgi or local;
	// empty if none has answered yet.
	Way string
	// Problem says why there is none.
	Problem string
	Ways    []WayReport
}

// WayReport is what is known of one way.
type WayReport struct {
	Way string
	// State is ready, untested, absent, mismatch, unproven (local: not held against an
	// engine yet) or none (local: the model has no files).
	State string
	// Problem says, beside the state, why it is not ready, what was not tested, and how its last calls
	// failed where several did since one that worked.
	Problem string
}

// Report says how a model's tokens are found now.
func (s *Service) Report(model string) Report { return s.report(model, time.Now()) }

// report says which way the next request of a model takes, and what each is.
func (s *Service) report(name string, now time.Time) Report {
	m := s.model(name)
	local := s.cfg.Local(name) != nil
	m.mu.Lock()
	defer m.mu.Unlock()
	r := Report{Model: name}
	for w := range m.ways {
		r.Ways = append(r.Ways, m.ways[w].report(way(w), now, local))
	}
	for _, w := range m.order(now, local, s.cfg.Preference) {
		if m.ways[w].works || w == wayLocal {
			r.Way = w.String()
			break
		}
	}
	if r.Way == "" {
		r.Problem = "no way of finding tokens has answered"
	}
	return r
}

// fewFailures are no problem: a request may be to blame.
const fewFailures = 2

// failures says how the last calls failed, empty where they did not.
func (s *wayState) failures() string {
	if s.failed <= fewFailures {
		return ""
	}
	return fmt.Sprintf("the last %d calls failed: %s", s.failed, s.failure)
}

func (s *wayState) report(w way, now time.Time, local bool) WayReport {
	r := WayReport{Way: w.String(), Problem: s.problem}
	switch {
	case w == wayLocal && !local:
		r.State, r.Problem = "none", ""
	case s.dropped:
		r.State = "mismatch"
	case now.Before(s.absent):
		r.State = "absent"
	case w == wayLocal && !s.proven:
		r.State = "unproven"
	case s.works:
		r.State = "ready"
	default:
		r.State = "untested"
	}
	switch r.State {
	case "ready", "untested", "unproven":
		r.Problem = cmp.Or(s.failures(), r.Problem)
	}
	return r
}
