package quota

import (
	"math"
	"time"
)

const (
	// slice is how long what a node has in hand lasts it, at its rate of late. The
	// longer, the fewer questions, and the more lies where it may not be needed.
	slice = 100 * time.Millisecond
	// spare is the same for slots that are free and kept, while they are plenty.
	spare = 50 * time.Millisecond
	// scarceFor is for how long a node gives free slots back at once after the owner
	// said that they are scarce.
	scarceFor = time.Second
	// shutFor is for how long a refusal is believed at most: limits may be raised.
	shutFor = time.Second
	// restless is the least that a slice's worth must be to be asked for ahead.
	restless = 4
)

// Holder is what one node has in hand of one key: slices that the owner gave it. It
// is not safe for concurrent use.
type Holder struct {
	own   Limit // as configured here
	limit Limit // as the owner has it

	requests, tokens int64 // in hand; tokens may be a debt
	slots, inUse     int   // slots in hand, used ones included
	given            time.Duration
	foreign          bool // in hand is what an earlier owner gave

	demand, demandTokens meter // all that asked, refused ones too
	spent, spentTokens   meter // what was admitted

	seq     uint64 // of the last question
	applied uint64 // the last one whose answer was taken
	asking  bool

	// Until shut the owner is not asked: it would refuse, for lack of why, until opens.
	shut, opens time.Duration
	why         Why
	scarce      time.Duration // until then free slots are given back at once
}

// Ask is a question to the owner of a key.
type Ask struct {
	// Seq numbers the asker's questions about the key.
	Seq uint64
	// Limit is as configured at the asker.
	Limit Limit
	// Held is how many slots the asker has.
	Held int
	// Need is what the request that waits lacks, zero for a question ahead of need;
	// Want is that and what would spare further questions.
	Need, Want Amount
}

// Grant answers an Ask.
type Grant struct {
	Seq uint64
	// Limit is what the owner goes by.
	Limit Limit
	// Given is all of what was needed, or nothing.
	Given Amount
	// Retry is how long another question is useless, and Why what is short until
	// then.
	Retry time.Duration
	Why   Why
	// Scarce says that slots which are not used are to be given back at once.
	Scarce bool
}

// Report says what a holder has and what it gives back. The slots replace what the
// owner believed.
type Report struct {
	Seq     uint64
	Applied bool // the answer to question Seq is in Held
	Held    int
	// Back is what is given back; Tokens may be negative: a debt.
	Back Amount
}

// Demand takes note that a request is there, and of the limit as configured here.
func (h *Holder) Demand(now time.Duration, l Limit, tokens int64) {
	if l != h.own {
		h.own, h.limit = l, l.Clean()
	}
	h.demand.add(now, 1)
	if h.limit.Tokens > 0 {
		h.demandTokens.add(now, float64(tokens))
	}
}

// Take begins a request with what is in hand, if that is enough.
func (h *Holder) Take(now time.Duration, tokens int64) bool {
	if h.lacks(tokens) != (Amount{}) {
		return false
	}
	if h.limit.Requests > 0 {
		h.requests--
	}
	if h.limit.Tokens > 0 {
		h.tokens -= tokens
	}
	h.begin(now, tokens)
	return true
}

// TakeAlone begins a request that was admitted without the owner.
func (h *Holder) TakeAlone(now time.Duration, tokens int64) { h.begin(now, tokens) }

func (h *Holder) begin(now time.Duration, tokens int64) {
	h.inUse++
	h.slots = max(h.slots, h.inUse)
	h.spent.add(now, 1)
	if h.limit.Tokens > 0 {
		h.spentTokens.add(now, float64(tokens))
	}
}

// lacks is what a request needs that is not in hand.
func (h *Holder) lacks(tokens int64) (a Amount) {
	if h.limit.Requests > 0 && h.requests < 1 {
		a.Requests = 1
	}
	if h.limit.Tokens > 0 && h.tokens < tokens {
		a.Tokens = min(tokens-h.tokens, maxTokens)
	}
	if h.limit.Concurrent > 0 && h.inUse >= h.slots {
		a.Slots = 1
	}
	return a
}

// Refused is the owner's refusal of a request of so many tokens, while it stands and
// what was short is what the request lacks.
func (h *Holder) Refused(now time.Duration, tokens int64) (v Verdict, ok bool) {
	if now >= h.shut || !h.lacks(tokens).has(h.why) {
		return v, false
	}
	return Verdict{Why: h.why, RetryAfter: h.opens - now}, true
}

// Asking is whether an answer is awaited.
func (h *Holder) Asking() bool { return h.asking }

// Low is whether what is in hand will soon be used up, so that more should be asked
// for before somebody must wait.
func (h *Holder) Low(now time.Duration) bool {
	if h.asking || now < h.shut {
		return false
	}
	low := func(limit, rate float64, have int64) bool {
		worth := rate * slice.Seconds()
		return limit > 0 && worth >= restless && float64(2*have) < worth
	}
	return low(h.limit.Requests, h.demand.rate, h.requests) || low(h.limit.Tokens, h.demandTokens.rate, h.tokens)
}

// Ask makes the next question, for a request of so many tokens, 0 where none waits,
// and as many others as wait behind it. The answer to an earlier question that comes
// after it brings no slots.
func (h *Holder) Ask(now time.Duration, tokens int64, behind Amount) Ask {
	h.seq++
	h.asking = true
	a := Ask{Seq: h.seq, Limit: h.own, Held: h.slots}
	if tokens > 0 {
		a.Need = h.lacks(tokens)
	}
	a.Want = a.Need
	h.demand.roll(now)
	h.demandTokens.roll(now)
	if h.limit.Requests > 0 {
		a.Want.Requests = max(a.Need.Requests+behind.Requests, ahead(h.demand.rate)-max(h.requests, 0))
	}
	if h.limit.Tokens > 0 {
		a.Want.Tokens = max(a.Need.Tokens+behind.Tokens, ahead(h.demandTokens.rate)-max(h.tokens, 0))
	}
	if h.limit.Concurrent > 0 && a.Need.Slots > 0 {
		a.Want.Slots += behind.Slots + h.kept(now)
	}
	return a
}

// ahead is how much of a rate is asked for ahead: a slice's worth, where that is
// more than single requests.
func ahead(rate float64) int64 {
	if worth := rate * slice.Seconds(); worth >= restless/2 {
		return int64(min(math.Ceil(worth), float64(maxTokens)))
	}
	return 0
}

// kept is how many free slots may be kept.
func (h *Holder) kept(now time.Duration) int {
	if now < h.scarce {
		return 0
	}
	return int(min(h.demand.rate*spare.Seconds(), MaxSlots))
}

// Apply takes an answer of the owner. One to an earlier question than the last brings
// no slots: the owner has forgotten that it gave them.
func (h *Holder) Apply(now time.Duration, g *Grant) {
	if g.Seq > h.seq || g.Seq <= h.applied {
		return
	}
	given := g.Given.clean()
	h.requests = min(h.requests+given.Requests, maxTokens)
	h.tokens = min(h.tokens+given.Tokens, maxTokens)
	h.given = now
	if g.Scarce {
		h.scarce = now + scarceFor
	}
	if g.Seq < h.seq {
		return
	}
	h.applied, h.asking = g.Seq, false
	h.slots = min(h.slots+given.Slots, MaxSlots)
	if !g.Limit.None() {
		h.limit = g.Limit.Clean()
	}
	h.shut, h.why = 0, Nothing
	if g.Retry > 0 && g.Why != Nothing {
		h.opens, h.shut, h.why = now+g.Retry, now+min(g.Retry, shutFor), g.Why
	}
}

// Recalled takes the owner's word that slots are scarce.
func (h *Holder) Recalled(now time.Duration) { h.scarce = now + scarceFor }

// GiveUp ends the wait for an answer, which may come yet.
func (h *Holder) GiveUp() { h.asking = false }

// Moved says that the key has another owner. What is in hand may be used for a
// moment more; it is not given back to who did not give it.
func (h *Holder) Moved(now time.Duration) {
	h.asking, h.foreign, h.given = false, true, now
	h.applied = h.seq // answers of the old owner are void
	h.shut, h.scarce = 0, 0
}

// Settle corrects what a request was booked with: by tokens more, or fewer where it
// is negative.
func (h *Holder) Settle(now time.Duration, tokens int64) {
	if h.limit.Tokens <= 0 {
		return
	}
	tokens = min(max(tokens, -maxTokens), maxTokens)
	h.tokens = max(h.tokens-tokens, -int64(min(maxDebt*h.limit.Tokens, float64(maxTokens))))
	h.spentTokens.add(now, float64(tokens))
}

// Release ends a request, and says whether slots are to be given back at once.
func (h *Holder) Release(now time.Duration) (urgent bool) {
	h.inUse = max(h.inUse-1, 0)
	return h.limit.Concurrent > 0 && h.slots > h.inUse && now < h.scarce
}

// Cancel takes a request back that has not begun.
func (h *Holder) Cancel(now time.Duration, tokens int64) {
	if h.limit.Requests > 0 {
		h.requests++
	}
	h.Settle(now, -tokens)
	h.Release(now)
}

// InHand is whether there is anything that Return might give back in time.
func (h *Holder) InHand() bool {
	return h.requests != 0 || h.tokens != 0 || h.slots > h.inUse
}

// Return is what to tell the owner: slots that are not used, and, of the rest, what
// more lies here than the rate of late needs. ok is whether that is anything. What an
// earlier owner gave is dropped in time, and given back to nobody.
func (h *Holder) Return(now time.Duration) (r Report, ok bool) {
	h.demand.roll(now)
	h.demandTokens.roll(now)
	if kept := h.inUse + h.kept(now); h.slots > kept {
		h.slots, ok = kept, h.limit.Concurrent > 0
	}
	if now-h.given >= slice {
		r.Back.Requests = max(h.requests-ahead(h.demand.rate), 0)
		r.Back.Tokens = max(h.tokens-ahead(h.demandTokens.rate), 0)
		if h.foreign {
			r.Back = Amount{}
			h.requests, h.tokens, h.foreign = 0, min(h.tokens, 0), false
		}
	}
	if h.tokens < 0 {
		r.Back.Tokens = h.tokens
	}
	h.requests -= r.Back.Requests
	h.tokens -= r.Back.Tokens
	return h.Report(r.Back), ok || r.Back != Amount{}
}

// ReturnSlots gives all free slots back, as the owner's own node does: it asks again at
// no cost.
func (h *Holder) ReturnSlots() Report {
	h.slots = h.inUse
	return h.Report(Amount{})
}

// Report is what is held, with what is given back.
func (h *Holder) Report(back Amount) Report {
	return Report{Seq: h.seq, Applied: h.applied == h.seq, Held: h.slots, Back: back}
}

// Holds is whether the owner must know of slots here.
func (h *Holder) Holds() bool { return h.limit.Concurrent > 0 && (h.slots > 0 || h.asking) }

// Idle is whether the key is not in use here, nor owes anything.
func (h *Holder) Idle() bool { return h.inUse == 0 && !h.asking && !h.InHand() }

// Limit is what the node goes by: as the owner has it, or as configured here where it
// has not been asked.
func (h *Holder) Limit() Limit { return h.limit }

// InUse is how many requests are under way here.
func (h *Holder) InUse() int { return h.inUse }

// Used is how much is used by this node.
func (h *Holder) Used(now time.Duration) Use {
	h.spent.roll(now)
	h.spentTokens.roll(now)
	return Use{Requests: h.spent.rate, Tokens: h.spentTokens.rate, Concurrent: h.inUse}
}

// Use is how much of a key is used.
type Use struct {
	Requests, Tokens float64 // a second, of late
	Concurrent       int
}
