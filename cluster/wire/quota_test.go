package wire

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state/quota"
)

func drawQuota(t *rapid.T) quota.Amount {
	return quota.Amount{
		Requests: rapid.Int64().Draw(t, "requests"), Tokens: rapid.Int64().Draw(t, "tokens"),
		Slots: rapid.IntRange(0, quota.MaxSlots).Draw(t, "slots"),
	}
}

func drawLimit(t *rapid.T) quota.Limit {
	return quota.Limit{
		Requests: rapid.Float64().Draw(t, "requests"), Tokens: rapid.Float64().Draw(t, "tokens"),
		Concurrent: rapid.IntRange(0, quota.MaxSlots).Draw(t, "concurrent"), Burst: drawSpan(t),
	}
}

func drawSpan(t *rapid.T) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(time.Hour/time.Microsecond)).Draw(t, "span")) * time.Microsecond
}

func TestQuestionsAboutLimitsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringN(1, 20, MaxQuotaKey).Draw(t, "key")
		ask := quota.Ask{Seq: rapid.Uint64().Draw(t, "seq"), Limit: drawLimit(t), Held: rapid.IntRange(0, quota.MaxSlots).Draw(t, "held"), Need: drawQuota(t), Want: drawQuota(t)}
		r := NewReader(append(AppendQuotaAsk(nil, key, &ask), "what a later version appends"...))
		if gotKey, got := string(r.QuotaKey()), r.QuotaAsk(); gotKey != key || got != ask || r.Bad() {
			t.Fatalf("sent %q %+v, read %q %+v", key, ask, gotKey, got)
		}
		answer := QuotaAnswer{
			Grant: quota.Grant{
				Seq: ask.Seq, Limit: ask.Limit, Given: ask.Want, Retry: drawSpan(t),
				Why: quota.Why(rapid.IntRange(0, int(quota.Concurrency)).Draw(t, "why")), Scarce: rapid.Bool().Draw(t, "scarce"),
			},
			Recall: rapid.Bool().Draw(t, "recall"), Disputed: rapid.Bool().Draw(t, "disputed"),
		}
		r = NewReader(AppendQuotaGrant(nil, key, &answer))
		if gotKey, got := string(r.QuotaKey()), r.QuotaGrant(); gotKey != key || got != answer || r.Bad() || r.Rest() != 0 {
			t.Fatalf("sent %q %+v, read %q %+v", key, answer, gotKey, got)
		}
	})
}

func TestReportsOnLimitsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum, last := rapid.Uint64().Draw(t, "sum"), rapid.Bool().Draw(t, "last")
		want := quota.Report{Seq: rapid.Uint64().Draw(t, "seq"), Applied: rapid.Bool().Draw(t, "applied"), Held: rapid.IntRange(0, quota.MaxSlots).Draw(t, "held"), Back: drawQuota(t)}
		b := AppendQuotaHeld(nil, sum, last)
		for range 3 {
			b = AppendQuotaReport(b, "tenant", &want)
		}
		r := NewReader(b)
		if gotSum, gotLast := r.QuotaHeld(); gotSum != sum || gotLast != last {
			t.Fatalf("sum %x %v, want %x %v", gotSum, gotLast, sum, last)
		}
		for range 3 {
			if key, got := string(r.QuotaKey()), r.QuotaReport(); key != "tenant" || got != want {
				t.Fatalf("sent %+v, read %q %+v", want, key, got)
			}
		}
		if r.Bad() || r.Rest() != 0 {
			t.Fatalf("%d bytes are left, malformed %v", r.Rest(), r.Bad())
		}
	})
}

func TestFramesAboutLimitsThatAreCutOffAreMalformed(t *testing.T) {
	answer := QuotaAnswer{Grant: quota.Grant{Seq: 1 << 20, Given: quota.Amount{Requests: 1 << 30, Tokens: -5}}}
	for name, f := range map[string]struct {
		whole []byte
		read  func(r *Reader)
	}{
		"ask":    {AppendQuotaAsk(nil, "key", &quota.Ask{Seq: 300}), func(r *Reader) { r.QuotaKey(); r.QuotaAsk() }},
		"grant":  {AppendQuotaGrant(nil, "key", &answer), func(r *Reader) { r.QuotaKey(); r.QuotaGrant() }},
		"report": {AppendQuotaReport(nil, "key", &quota.Report{Held: 5}), func(r *Reader) { r.QuotaKey(); r.QuotaReport() }},
	} {
		for n := range f.whole {
			if r := NewReader(f.whole[:n]); true {
				if f.read(&r); !r.Bad() {
					t.Errorf("%s: %d of %d bytes read as a whole", name, n, len(f.whole))
				}
			}
		}
	}
	r := NewReader(AppendQuotaKey(nil, string(make([]byte, MaxQuotaKey+1))))
	if r.QuotaKey() != nil || !r.Bad() {
		t.Error("a key that is too long is taken")
	}
}

func FuzzReadQuota(f *testing.F) {
	f.Add(QuotaAsk, AppendQuotaAsk(nil, "key", &quota.Ask{Seq: 1, Limit: quota.Limit{Requests: math.NaN()}}))
	f.Add(QuotaGrant, AppendQuotaGrant(nil, "key", &QuotaAnswer{Grant: quota.Grant{Retry: time.Second}}))
	f.Add(QuotaHeld, AppendQuotaReport(AppendQuotaHeld(nil, 1, true), "key", &quota.Report{Held: 1}))
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		r := NewReader(body)
		var limit quota.Limit
		switch kind {
		case QuotaAsk:
			r.QuotaKey()
			limit = r.QuotaAsk().Limit
		case QuotaGrant:
			r.QuotaKey()
			limit = r.QuotaGrant().Limit
		case QuotaHeld:
			for r.QuotaHeld(); r.Rest() > 0; {
				r.QuotaKey()
				if got := r.QuotaReport(); got.Held < 0 || got.Held > quota.MaxSlots {
					t.Errorf("%d slots", got.Held)
				}
			}
		}
		if c := limit.Clean(); c.Clean() != c || !(c.Requests >= 0) || c.Burst <= 0 {
			t.Errorf("%+v is not clean", c)
		}
	})
}
