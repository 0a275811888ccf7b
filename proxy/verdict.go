package proxy

import (
	"sync"
	"time"

	"kvca/router"
)

// cachedRecord is what the index predicted of one backend's cache, and what came of
// it. Its names are part of the interface that scripts rely on.
type cachedRecord struct {
	// Predicted and Reported are tokens, of answers that report them.
	Predicted int64 `json:"predicted"`
	Reported  int64 `json:"reported"`
	// Answers counts them; of Less the engine had a block less than predicted or more
	// than that, of More it had more.
	Answers uint64 `json:"answers"`
	Less    uint64 `json:"less"`
	More    uint64 `json:"more"`
}

// records are by backend, as long as the process lives; backends come from
// configuration, so they are few.
type records struct {
	mu sync.Mutex
	of map[string]*cachedRecord
}

func (r *records) add(backend string, predicted, reported int64, wrong string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of[backend]
	if c == nil {
		c = new(cachedRecord)
		r.of[backend] = c
	}
	c.Answers++
	c.Predicted += predicted
	c.Reported += reported
	switch wrong {
	case "less":
		c.Less++
	case "more":
		c.More++
	}
}

// all is a copy of the records of these backends.
func (r *records) all(backends []*router.Backend) map[string]cachedRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make(map[string]cachedRecord)
	for _, b := range backends {
		if c := r.of[b.ID]; c != nil {
			list[b.ID] = *c
		}
	}
	return list
}

// learnIndex compares what the index predicted with what the engine reports of the
// prompt, and corrects it.
func (x *exchange) learnIndex(u usage) {
	q := x.inquiry
	if q == nil || u.prompt <= 0 {
		return
	}
	if u.prompt-max(u.cached, 0) >= novelTokens && x.ticket.Backend.Precise() {
		x.cfg.Knowledge.cfg.Expect(x.ticket.Backend)
	}
	predicted, ok := x.ticket.Predicted()
	if !ok {
		return
	}
	x.cfg.Knowledge.judge(x.name.Model, x.ticket.Backend, q, predicted, u)
}

// novelTokens are so many that whatever an engine's block size is, some block was new.
const novelTokens = 512

// unknownBlock is the block size of an engine that has told of no block yet.
const unknownBlock = 16

// judge takes one prediction and what became of it. One block more or less is no
// error: it may have come or gone while the request waited.
func (k *Knowledge) judge(model string, b *router.Backend, q *inquiry, predicted int64, u usage) {
	if q.answer.Several {
		return // it reports of all prompts
	}
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
	k.records.add(b.ID, predicted, u.cached, wrong)
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
