package proxy

import (
	"math/bits"
	"sync"
	"time"
)

// How an index that is wrong about a model is found out: of the last answers, up to
// creditWindow, more than a quarter were not what was predicted, and at least
// creditLeast were seen. A wrong template or tokenizer errs every time; a cache that
// thrashes, now and then.
const (
	creditWindow = 64
	creditLeast  = 24
	// It is asked again after firstBan, and after twice as long each time that it is
	// found wrong again, up to lastBan.
	firstBan = time.Minute
	lastBan  = 30 * time.Minute
	// creditModels bounds how many models are watched. Models come from engines.
	creditModels = 4096
)

// credit is whether predictions of each model come true.
type credit struct {
	mu     sync.Mutex
	models map[string]*standing
}

// standing is what became of a model's last predictions: a bit each, 1 for wrong.
type standing struct {
	wrong, seen uint64
	until, ban  time.Duration
}

func newCredit() *credit { return &credit{models: make(map[string]*standing)} }

// may is whether the index may be asked about a model.
func (t *credit) may(model string, now time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.models[model]
	return r == nil || now >= r.until
}

// saw takes what became of one prediction, and says for how long the index is not
// asked about the model from now on, 0 where nothing has changed.
func (t *credit) saw(model string, wrong bool, now time.Duration) (ban time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.models[model]
	if r == nil {
		if len(t.models) >= creditModels {
			return 0
		}
		r = new(standing)
		t.models[model] = r
	}
	if now < r.until {
		return 0 // asked before
	}
	r.wrong, r.seen = r.wrong<<1, r.seen<<1|1
	if wrong {
		r.wrong |= 1
	}
	seen, bad := bits.OnesCount64(r.seen), bits.OnesCount64(r.wrong)
	if seen >= creditLeast && 4*bad > seen {
		r.ban = min(max(2*r.ban, firstBan), lastBan)
		r.wrong, r.seen, r.until = 0, 0, now+r.ban
		return r.ban
	}
	if seen == creditWindow && 16*bad <= seen {
		r.ban = 0 // it has earned a first ban again
	}
	return 0
}

// banned lists the models that the index is not asked about.
func (t *credit) banned(now time.Duration) (models []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for model, r := range t.models {
		if now < r.until {
			models = append(models, model)
		}
	}
	return models
}
