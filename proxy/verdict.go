package proxy

import (
	"time"

	"kvca/router"
)

// learnIndex compares what the index predicted with what the engine reports of the
// prompt, and corrects it.
func (x *exchange) learnIndex(u usage) {
	q := x.inquiry
	if q == nil || u.prompt <= 0 {
		return
	}
	if u.prompt-max(u.cached, 0) >= novelTokens && x.ticket.Backend.Precise() {
		x.p.cfg.Knowledge.cfg.Expect(x.ticket.Backend)
	}
	predicted, ok := x.ticket.Predicted()
	if !ok {
		return
	}
	x.p.cfg.Knowledge.judge(x.name.Model, x.ticket.Backend, q, predicted, u)
}

// novelTokens are so many that whatever an engine's block size is, some block was new.
const novelTokens = 512

// unknownBlock is the block size of an engine that has told of no block yet.
const unknownBlock = 16

// judge takes one prediction and what became of it. One block more or less is no
// error: it may have come or gone while the request waited.
func (k *Knowledge) judge(model string, b *router.Backend, q *inquiry, predicted int64, u usage) {
	if length := int64(len(q.answer.Prompt.Tokens)); u.prompt != length {
		k.metrics.lengths.Inc()
		k.verdict(model, true, "the engine counts other tokens than were looked up", "counted", u.prompt, "looked_up", length)
		return
	}
	if u.cached < 0 {
		return
	}
	m, heard := q.held.Of(b.Slot)
	if !heard {
		return
	}
	k.metrics.predicted.WithLabelValues(b.ID).Add(float64(predicted))
	k.metrics.reported.WithLabelValues(b.ID).Add(float64(u.cached))
	block, wrong := int64(max(m.BlockSize, unknownBlock)), ""
	switch {
	case u.cached+block <= predicted:
		// It has evicted them, and the event was lost or is on its way.
		k.cfg.Index.Forget(b.Slot, m.Rank, &q.answer.Prompt, int(u.cached))
		k.metrics.wrong.WithLabelValues(b.ID, "less").Inc()
		wrong = "less"
	case predicted+block <= u.cached:
		k.metrics.wrong.WithLabelValues(b.ID, "more").Inc()
		wrong = "more"
	}
	k.verdict(model, wrong != "" && abs64(predicted-u.cached) > block, "engines report other cached tokens than the index predicts",
		"backend", b.ID, "predicted", predicted, "reported", u.cached)
}

func (k *Knowledge) verdict(model string, wrong bool, why string, facts ...any) {
	ban := k.credit.saw(model, wrong, k.cfg.Now())
	if ban == 0 {
		return
	}
	k.metrics.distrusted.Inc()
	k.cfg.Logger.Warn("the precise index is wrong about a model: the block map decides for a while",
		append([]any{"model", model, "why", why, "for", ban.Round(time.Second)}, facts...)...)
}

func abs64(x int64) int64 {
	if x < 0 {
		return -x
	}
	return x
}
