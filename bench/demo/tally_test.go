package demo

import (
	"errors"
	"testing"
	"time"

	"kvca/state/virtualtime"
)

func TestRecentSumsForgetWhatIsOld(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		tally := NewTally()
		tally.Add(Result{Backend: "a", Prompt: 10, TTFT: time.Second})
		time.Sleep(5 * time.Second)
		tally.Add(Result{Backend: "a", FollowUp: true, Kept: true, Prompt: 30, Cached: 20, TTFT: 3 * time.Second})
		if s := tally.Snapshot(); s.Recent.Requests != 2 || s.RecentSpan != 5*time.Second {
			t.Errorf("%d requests in %v", s.Recent.Requests, s.RecentSpan)
		}
		time.Sleep(7500 * time.Millisecond)
		s := tally.Snapshot()
		if s.Recent.Requests != 1 || s.RecentSpan != 10500*time.Millisecond || s.Recent.MeanTTFT() != 3*time.Second {
			t.Errorf("%d requests in %v, TTFT %v", s.Recent.Requests, s.RecentSpan, s.Recent.MeanTTFT())
		}
		if c := &s.Total; c.Requests != 2 || c.CachedShare() != 0.5 || c.MeanTTFT() != 2*time.Second || c.KeptShare() != 1 {
			t.Errorf("in all %+v", c)
		}
		time.Sleep(20 * time.Second)
		if s := tally.Snapshot(); s.Recent.Requests != 0 || s.Total.Requests != 2 {
			t.Errorf("%d of late, %d in all", s.Recent.Requests, s.Total.Requests)
		}
	})
}

func TestErrorsCountAsNothingElse(t *testing.T) {
	tally := NewTally("idle")
	first := errors.New("first")
	for _, err := range []error{first, errors.New("second")} {
		tally.Add(Result{Err: err, Backend: "a", Prompt: 5, TTFT: time.Second})
	}
	s := tally.Snapshot()
	if c := &s.Total; c.Errors != 2 || c.Requests != 0 || c.Prompt != 0 || len(s.Backends) != 1 || s.Backends["idle"] != 0 || s.Err != first {
		t.Errorf("%+v, %v, first error %v", c, s.Backends, s.Err)
	}
}
