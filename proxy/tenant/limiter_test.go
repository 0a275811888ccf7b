package tenant

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"kvca/state/quota"
)

// tally is Quotas that only count.
type tally struct {
	requests, under map[string]int
	tokens          map[string]int64
	refuse          string
	degraded        bool
}

func newTally() *tally {
	return &tally{requests: map[string]int{}, under: map[string]int{}, tokens: map[string]int64{}}
}

func (q *tally) Acquire(_ context.Context, key string, _ quota.Limit, tokens int64) quota.Verdict {
	if key == q.refuse {
		return quota.Verdict{Why: quota.Tokens, RetryAfter: 1100 * time.Millisecond}
	}
	q.requests[key]++
	q.under[key]++
	q.tokens[key] += tokens
	return quota.Verdict{OK: true, Degraded: q.degraded}
}
func (q *tally) Settle(key string, tokens int64) { q.tokens[key] += tokens }
func (q *tally) Release(key string)              { q.under[key]-- }
func (q *tally) Cancel(key string, tokens int64) {
	q.requests[key]--
	q.under[key]--
	q.tokens[key] -= tokens
}

func limited() *Tenant {
	return &Tenant{
		Name: "acme", Limits: Limits{RequestsPerSecond: 10},
		PerModel: map[string]Limits{"big": {Concurrent: 1}, "free": {}},
	}
}

func TestATenantAndItsModelAreBothBooked(t *testing.T) {
	q := newTally()
	l := NewLimiter(q, nil)
	p, refusal := l.Admit(context.Background(), limited(), "big", 100)
	if refusal != nil || len(q.requests) != 2 || q.tokens["acme"] != 100 {
		t.Fatalf("%v, booked %v", refusal, q)
	}
	p.Settle(70)
	p.Settle(250)
	p.Close()
	p.Close()
	p.Close()
	for key := range q.requests {
		if q.under[key] != 0 || q.tokens[key] != 250 || q.requests[key] != 1 {
			t.Errorf("%q: %d under way, %d tokens", key, q.under[key], q.tokens[key])
		}
	}
	for _, model := range []string{"small", "free"} {
		before := len(q.requests)
		if _, refusal := l.Admit(context.Background(), limited(), model, 1); refusal != nil || len(q.requests) != before {
			t.Errorf("%s has no limits of its own, booked %v", model, q.requests)
		}
	}
}

func TestWhatIsRefusedByTheModelIsNotBookedForTheTenant(t *testing.T) {
	q := newTally()
	q.refuse = "acme\nbig"
	reg := prometheus.NewPedanticRegistry()
	l := NewLimiter(q, reg)
	p, refusal := l.Admit(context.Background(), limited(), "big", 100)
	if refusal == nil || refusal.Why != "tokens" || refusal.RetryAfter != 2*time.Second {
		t.Fatalf("refusal %+v, want tokens and 2s: whole seconds, rounded up", refusal)
	}
	p.Settle(5)
	p.Close()
	if q.requests["acme"] != 0 || q.under["acme"] != 0 || q.tokens["acme"] != 0 {
		t.Errorf("the tenant is left with %v", q)
	}
	if n := testutil.ToFloat64(l.metrics.refused.WithLabelValues("acme", "tokens")); n != 1 {
		t.Errorf("%v refusals counted", n)
	}
	if n := testutil.ToFloat64(l.metrics.decisions[0][quota.Tokens]); n != 1 {
		t.Errorf("%v decisions counted", n)
	}
}

func TestWhoHasNoLimitsCostsNothing(t *testing.T) {
	q := newTally()
	l := NewLimiter(q, nil)
	free := &Tenant{Name: "free", PerModel: map[string]Limits{"other": {Concurrent: 1}}}
	if n := testing.AllocsPerRun(100, func() {
		p, refusal := l.Admit(context.Background(), free, "model", 10)
		if refusal != nil {
			t.Fatal("refused")
		}
		p.Settle(5)
		p.Close()
	}); n != 0 || len(q.requests) != 0 {
		t.Errorf("%v allocations, booked %v", n, q.requests)
	}
}

func TestDegradedDecisionsAreCounted(t *testing.T) {
	q := newTally()
	q.degraded = true
	l := NewLimiter(q, nil)
	p, _ := l.Admit(context.Background(), limited(), "x", 7)
	if n := testutil.ToFloat64(l.metrics.decisions[1][quota.Nothing]); n != 1 {
		t.Errorf("%v decisions without an owner counted", n)
	}
	m := l.metrics.of("acme")
	if n := testutil.ToFloat64(m.inFlight); n != 1 {
		t.Errorf("%v in flight", n)
	}
	p.Close()
	if testutil.ToFloat64(m.inFlight) != 0 || testutil.ToFloat64(m.tokens) != 7 {
		t.Error("the end is not counted")
	}
}

func TestTenantsBeyondTheBoundShareSeries(t *testing.T) {
	m := newLimiterMetrics(nil)
	for i := range maxTenants {
		m.of(fmt.Sprint(i))
	}
	if m.of("one more") != m.of("another") || m.of("0") == m.of("another") {
		t.Error("series are made beyond the bound, or those that are there are not used")
	}
}

// A lone node holds its limits in any order of what comes, and forgets who is quiet.
func TestALoneNodesLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Duration(0)
		q := NewLocal(func() time.Duration { return now })
		limit := quota.Limit{Requests: 10, Concurrent: 5}
		admitted, under := 0, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 100).Draw(t, "ms")) * time.Millisecond
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				v := q.Acquire(context.Background(), "k", limit, 1)
				if v.OK {
					admitted++
					under++
				} else if v.RetryAfter <= 0 || v.Why == quota.Nothing || v.Degraded {
					t.Fatalf("%+v", v)
				}
			case 2:
				if under > 0 {
					under--
					q.Release("k")
				}
			case 3:
				if under > 0 {
					under--
					admitted--
					q.Cancel("k", 1)
				}
			}
			if under > 5 || float64(admitted) > 11+10*now.Seconds() {
				t.Fatalf("%d under way, %d admitted in %v", under, admitted, now)
			}
		}
		for range under {
			q.Release("k")
		}
		now += time.Minute
		q.Acquire(context.Background(), "other", limit, 1)
		if len(q.keys) != 1 {
			t.Fatalf("%d keys are known, want the one that is in use", len(q.keys))
		}
	})
}

func TestALoneNodesKeysAreBounded(t *testing.T) {
	q := NewLocal(func() time.Duration { return 0 })
	limit := quota.Limit{Concurrent: 1}
	for i := range maxLocalKeys {
		q.Acquire(context.Background(), fmt.Sprint(i), limit, 1)
	}
	v := q.Acquire(context.Background(), "one more", limit, 1)
	if !v.OK || !v.Degraded || len(q.keys) != maxLocalKeys {
		t.Errorf("%+v with %d keys", v, len(q.keys))
	}
	q.Release("one more")
	q.Settle("one more", 5)
}

func BenchmarkAdmitWithoutLimits(b *testing.B) {
	l, t := NewLimiter(newTally(), nil), &Tenant{Name: "free"}
	b.ReportAllocs()
	for b.Loop() {
		p, _ := l.Admit(context.Background(), t, "model", 10)
		p.Close()
	}
}

func BenchmarkAdmitAtALoneNode(b *testing.B) {
	began := time.Now()
	l := NewLimiter(NewLocal(func() time.Duration { return time.Since(began) }), nil)
	t := &Tenant{Name: "acme", Limits: Limits{RequestsPerSecond: 1e9, TokensPerSecond: 1e12, Concurrent: 10}}
	b.ReportAllocs()
	for b.Loop() {
		p, refusal := l.Admit(context.Background(), t, "model", 10)
		if refusal != nil {
			b.Fatal(refusal)
		}
		p.Close()
	}
}
