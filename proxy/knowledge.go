package proxy

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/proxy/engine/prompt"
	"kvca/router"
	"kvca/state/kvindex"
)

// KnowledgeConfig configures a Knowledge.
type KnowledgeConfig struct {
	// Index holds what engines say they hold.
	Index *kvindex.Index
	// Prompts finds the tokens of requests.
	Prompts *prompt.Service
	// Unbelieved names the models for which nothing is believed that the index does
	// not know: load decides then. "" stands for all of them.
	Unbelieved map[string]bool
	// Expect is told of each answer for which a covered backend must have computed new
	// blocks; nil for nobody.
	Expect func(*router.Backend)
	// Logger takes what an operator should know.
	Logger *slog.Logger
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
	// Now is the time since a fixed moment; default: since NewKnowledge.
	Now func() time.Duration
}

// Knowledge is the precise index as requests use it: it asks for a request's tokens,
// looks up who holds them, and learns from the answer whether that was so. Its
// methods may be called from any goroutine.
type Knowledge struct {
	cfg       KnowledgeConfig
	metrics   *knowledgeMetrics
	credit    *credit
	records   records
	covers    covers
	inquiries sync.Pool
}

// NewKnowledge makes the knowledge of an index.
func NewKnowledge(c KnowledgeConfig) (*Knowledge, error) {
	if c.Index == nil || c.Prompts == nil {
		return nil, errors.New("knowledge: want an index and a service of prompts")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Expect == nil {
		c.Expect = func(*router.Backend) {}
	}
	if c.Now == nil {
		began := time.Now()
		c.Now = func() time.Duration { return time.Since(began) }
	}
	k := &Knowledge{cfg: c, credit: newCredit(), metrics: newKnowledgeMetrics(c.Registerer)}
	k.records.of = make(map[string]*cachedRecord)
	k.covers.last = make(map[string]time.Duration)
	k.inquiries.New = func() any { return new(inquiry) }
	return k, nil
}

// Why the index was not asked, beside the reasons of package prompt: a closed set.
const (
	noSource   = "no_source"   // no engine of the model is heard
	privateKey = "private_key" // the engine tells the request's cache apart by what its events leave out
	distrusted = "distrusted"  // it was wrong about this model too often lately
)

// inquiry is what is known of one request's prompt. It is used again.
type inquiry struct {
	request prompt.Request
	answer  prompt.Answer
	held    kvindex.Result
	index   router.IndexAnswer
	engines []prompt.Engine
	earlier []uint64
}

// consult asks the index about the request, where engines of its model tell it what
// they hold. Whatever goes wrong, the request goes on by the block map.
func (x *exchange) consult() {
	k := x.cfg.Knowledge
	if k == nil || x.namer == nil || x.want.SkipsCache {
		return
	}
	if !covered(x.members) {
		if k.covers.was(x.name.Model, k.cfg.Now()) { // whoever told of it is gone
			x.fallBack(noSource)
		}
		return
	}
	k.covers.is(x.name.Model, k.cfg.Now())
	x.inquiry = k.inquiries.Get().(*inquiry)
	x.want.Unbelieved = k.cfg.Unbelieved[x.name.Model] || k.cfg.Unbelieved[""]
	if why := k.inquire(x); why != "" {
		x.fallBack(why)
		return
	}
	x.want.Index = &x.inquiry.index
}

// fallBack leaves the request to the block map, or to load, and says why.
func (x *exchange) fallBack(why string) {
	x.want.Fallback = why
	if !x.began.IsZero() { // an explanation is no request
		x.cfg.Knowledge.metrics.fallbacks.WithLabelValues(why).Inc()
	}
}

// covered is whether the index covers any of the members.
func covered(members []*router.Backend) bool {
	for _, b := range members {
		if b.Precise() {
			return true
		}
	}
	return false
}

// inquire fills the exchange's inquiry, or says why it can't be.
func (k *Knowledge) inquire(x *exchange) (why string) {
	q := x.inquiry
	switch {
	case x.name.PrivateKey:
		return privateKey
	case !k.heard(x.members):
		return noSource
	case !k.credit.may(x.name.Model, k.cfg.Now()):
		return distrusted
	}
	began := k.cfg.Now()
	q.describe(x)
	answer, failure := k.cfg.Prompts.Tokens(x.r.Context(), &q.request)
	q.request.Body = nil
	k.metrics.tokens.Observe((k.cfg.Now() - began).Seconds())
	if failure != nil {
		return failure.Reason
	}
	k.metrics.sources.WithLabelValues(answer.Source).Inc()
	q.answer = answer
	began = k.cfg.Now()
	k.cfg.Index.Lookup(&q.answer.Prompt, &q.held)
	k.metrics.lookup.Observe((k.cfg.Now() - began).Seconds())
	q.index = router.IndexAnswer{Held: &q.held, Tokens: len(answer.Prompt.Tokens), Whole: answer.Exact && !answer.Several}
	return ""
}

func (k *Knowledge) heard(members []*router.Backend) bool {
	for _, b := range members {
		if b.Precise() && k.cfg.Index.Heard(b.Slot) {
			return true
		}
	}
	return false
}

// describe asks for the exchange's tokens.
func (q *inquiry) describe(x *exchange) {
	q.engines, q.earlier = q.engines[:0], q.earlier[:0]
	for _, facts := range x.members {
		if b := x.p.pool.Of(facts); b != nil && facts.Standing() == router.Available {
			q.engines = append(q.engines, b)
		}
	}
	// The marks are the ends of the last messages: one of them may be where the
	// request before this one ended.
	key, marks := x.namer.hasher.Sum(), x.want.Marks
	for i := len(marks) - 1; i >= 0; i-- {
		if marks[i].Hash != key {
			q.earlier = append(q.earlier, marks[i].Hash)
		}
	}
	lora := ""
	if x.p.pool.IsAdapter(x.name.Model) {
		lora = x.name.Model
	}
	q.request = prompt.Request{
		Endpoint: x.endpoint.cbr, Body: x.body, Model: x.name.Model, LoRA: lora, Salt: x.name.CacheSalt,
		Key: key, Earlier: q.earlier, Bytes: x.name.Bytes, Engines: q.engines,
	}
}

// dismiss gives the inquiry back.
func (x *exchange) dismiss() {
	if q := x.inquiry; q != nil {
		clear(q.engines)
		q.request, q.answer, x.inquiry, x.want.Index = prompt.Request{}, prompt.Answer{}, nil, nil
		x.cfg.Knowledge.inquiries.Put(q)
	}
}
