package wire

import (
	"encoding/binary"
	"time"

	"kvca/state/quota"
)

// MaxQuotaKey is how long the name of a key of limits may be.
const MaxQuotaKey = 512

// Bits of a QuotaGrant frame's flags.
const (
	quotaScarce = 1 << iota
	quotaRecall
	quotaDisputed
)

// QuotaAnswer is a QuotaGrant frame without its key.
type QuotaAnswer struct {
	quota.Grant
	// Recall says that nothing was asked: slots are scarce.
	Recall bool
	// Disputed says that the node asked does not own the key, as it sees it.
	Disputed bool
}

// Varint reads a signed varint.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bit is that bit where on is set.
func bit(on bool, bit byte) byte {
	if on {
		return bit
	}
	return 0
}

// span reads a time in microseconds, an hour at most.
func (r *Reader) span() time.Duration {
	return time.Duration(min(r.Uvarint(), uint64(time.Hour/time.Microsecond))) * time.Microsecond
}

func appendSpan(b []byte, d time.Duration) []byte { return appendAmount(b, d.Microseconds()) }

func appendLimit(b []byte, l *quota.Limit) []byte {
	b = appendF64(appendF64(b, l.Requests), l.Tokens)
	return appendSpan(appendAmount(b, int64(l.Concurrent)), l.Burst)
}

func (r *Reader) limit() quota.Limit {
	return quota.Limit{Requests: r.F64(), Tokens: r.F64(), Concurrent: r.slots(), Burst: r.span()}
}

// slots reads how many requests are under way: as many as can be, at most.
func (r *Reader) slots() int { return int(min(r.Uvarint(), quota.MaxSlots)) }

func appendQuota(b []byte, a *quota.Amount) []byte {
	b = binary.AppendVarint(binary.AppendVarint(b, a.Requests), a.Tokens)
	return appendAmount(b, int64(a.Slots))
}

func (r *Reader) quota() quota.Amount {
	return quota.Amount{Requests: r.Varint(), Tokens: r.Varint(), Slots: r.slots()}
}

// QuotaKey reads the name of a key, which aliases the body.
func (r *Reader) QuotaKey() []byte {
	key := r.Bytes()
	if len(key) == 0 || len(key) > MaxQuotaKey {
		r.bad, r.b = true, nil
		return nil
	}
	return key
}

// AppendQuotaKey appends the name of a key.
func AppendQuotaKey(b []byte, key string) []byte {
	return appendName(b, key)
}

// AppendQuotaAsk appends a QuotaAsk frame.
func AppendQuotaAsk(b []byte, key string, a *quota.Ask) []byte {
	b = binary.AppendUvarint(AppendQuotaKey(b, key), a.Seq)
	b = appendAmount(appendLimit(b, &a.Limit), int64(a.Held))
	return appendQuota(appendQuota(b, &a.Need), &a.Want)
}

// QuotaAsk reads a QuotaAsk frame behind its key.
func (r *Reader) QuotaAsk() quota.Ask {
	return quota.Ask{Seq: r.Uvarint(), Limit: r.limit(), Held: r.slots(), Need: r.quota(), Want: r.quota()}
}

// AppendQuotaGrant appends a QuotaGrant frame.
func AppendQuotaGrant(b []byte, key string, a *QuotaAnswer) []byte {
	flags := bit(a.Scarce, quotaScarce) | bit(a.Recall, quotaRecall) | bit(a.Disputed, quotaDisputed)
	b = append(binary.AppendUvarint(AppendQuotaKey(b, key), a.Seq), flags, byte(a.Why))
	return appendLimit(appendSpan(appendQuota(b, &a.Given), a.Retry), &a.Limit)
}

// QuotaGrant reads a QuotaGrant frame behind its key.
func (r *Reader) QuotaGrant() (a QuotaAnswer) {
	a.Seq = r.Uvarint()
	flags := r.U8()
	a.Scarce, a.Recall, a.Disputed = flags&quotaScarce != 0, flags&quotaRecall != 0, flags&quotaDisputed != 0
	a.Why = quota.Why(min(r.U8(), byte(quota.Concurrency)))
	a.Given, a.Retry, a.Limit = r.quota(), r.span(), r.limit()
	return a
}

// AppendQuotaHeld appends a QuotaHeld frame's body up to its reports, which go on to
// its end. A last one says that the sender, who sees the members of that sum, has
// told all that it holds of the receiver's keys.
func AppendQuotaHeld(b []byte, sum uint64, last bool) []byte {
	return append(appendU64(b, sum), bit(last, LastPart))
}

// QuotaHeld reads a QuotaHeld frame up to its reports.
func (r *Reader) QuotaHeld() (sum uint64, last bool) { return r.U64(), r.U8()&LastPart != 0 }

// AppendQuotaReport appends the report on a key.
func AppendQuotaReport(b []byte, key string, t *quota.Report) []byte {
	b = append(binary.AppendUvarint(AppendQuotaKey(b, key), t.Seq), bit(t.Applied, 1))
	return appendQuota(appendAmount(b, int64(t.Held)), &t.Back)
}

// QuotaReport reads a report behind its key.
func (r *Reader) QuotaReport() quota.Report {
	return quota.Report{Seq: r.Uvarint(), Applied: r.U8()&1 != 0, Held: r.slots(), Back: r.quota()}
}
