package demo

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvca/state/virtualtime"
)

// play plays against a handler, which ends the play itself.
func play(t *testing.T, sessions int, handler func(stop func(), w http.ResponseWriter, r *http.Request)) *Snapshot {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(stop, w, r) }))
	defer server.Close()
	p := Player{URLs: []string{server.URL}, Script: small(), Sessions: sessions, Tally: NewTally()}
	p.Run(ctx)
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatal("the play was not ended")
	}
	return p.Tally.Snapshot()
}

func TestPlayerCountsWhatItsClientsSee(t *testing.T) {
	var served atomic.Int64
	s := play(t, 4, func(stop func(), w http.ResponseWriter, _ *http.Request) {
		n := served.Add(1)
		w.Header().Set(headerBackend, "only")
		io.WriteString(w, roleEvent+textEvent+usageEvent+doneEvent)
		if n == 100 {
			stop()
		}
	})
	c := &s.Total
	if c.Requests != served.Load() || c.Errors != 0 || s.Backends["only"] != c.Requests {
		t.Errorf("%d served, %+v, %v", served.Load(), c, s.Err)
	}
	if c.KeptShare() != 1 || c.FollowUps < 50 || c.FollowUps >= c.Requests || c.CachedShare() != 0.8 || c.MeanTTFT() <= 0 {
		t.Errorf("kept %v of %d, cached %v, TTFT %v", c.KeptShare(), c.FollowUps, c.CachedShare(), c.MeanTTFT())
	}
}

func TestConversationThatFailsIsNotContinued(t *testing.T) {
	var served, followUps atomic.Int64
	s := play(t, 2, func(stop func(), w http.ResponseWriter, r *http.Request) {
		var request struct{ Messages []any }
		if json.NewDecoder(r.Body).Decode(&request) == nil && len(request.Messages) > 2 {
			followUps.Add(1)
		}
		http.Error(w, "no room", http.StatusServiceUnavailable)
		if served.Add(1) == 10 {
			stop()
		}
	})
	if s.Total.Requests != 0 || s.Total.Errors < 9 || s.Err == nil || !strings.Contains(s.Err.Error(), "503") || !strings.Contains(s.Err.Error(), "no room") {
		t.Errorf("%+v, first error %v", s.Total, s.Err)
	}
	if followUps.Load() != 0 {
		t.Errorf("%d follow-ups", followUps.Load())
	}
}

func TestTurnsHaveGraceAtTheEnd(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		turns, cut := context.WithCancel(t.Context())
		stop()
		began := time.Now()
		cutLate(ctx, turns, cut)
		if turns.Err() == nil || time.Since(began) != endGrace {
			t.Errorf("cut after %v: %v", time.Since(began), turns.Err())
		}
	})
}

func TestTurnsGoToEveryNode(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	var served [3]atomic.Int64
	p := Player{Script: small(), Sessions: 4, Tally: NewTally()}
	for i := range served {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(headerBackend, "only")
			io.WriteString(w, roleEvent+textEvent+usageEvent+doneEvent)
			served[i].Add(1)
			if served[0].Load() >= 10 && served[1].Load() >= 10 && served[2].Load() >= 10 {
				stop()
			}
		}))
		defer server.Close()
		p.URLs = append(p.URLs, server.URL)
	}
	p.Run(ctx)
	if ctx.Err() == context.DeadlineExceeded {
		t.Fatalf("served %d, %d and %d", served[0].Load(), served[1].Load(), served[2].Load())
	}
	if c := p.Tally.Snapshot().Total; c.Errors != 0 || c.KeptShare() != 1 {
		t.Errorf("%+v", c)
	}
}
