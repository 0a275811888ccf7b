package router

import (
	"math"
	"sync"
	"sync/atomic"
)

// Bytes of CBR per token until a model's answers have taught better: English
// text in a byte-pair vocabulary of 100,000 and more.
const initialBytesPerToken = 4.0

// maxModels bounds how many models have a state of their own. Models come from
// configuration and from the engines, never from clients; adapters that come
// and go for months are why there is a bound. Those beyond it share one.
const maxModels = 4096

// model is what the router keeps per model.
type model struct {
	policy atomic.Pointer[policy]
	ratio  atomic.Uint64 // float64 bits: bytes of CBR per token
}

func newModel(p policy) *model {
	m := new(model)
	m.policy.Store(&p)
	return m
}

type models struct {
	mu     sync.RWMutex
	byName map[string]*model
	shared *model
	create func(name string) *model
}

func newModels(create func(string) *model) *models {
	return &models{byName: make(map[string]*model), shared: create(""), create: create}
}

func (m *models) get(name string) *model {
	m.mu.RLock()
	found := m.byName[name]
	m.mu.RUnlock()
	if found != nil {
		return found
	}
	return m.add(name)
}

// rule is the policy that decides now.
func (m *model) rule() policy { return *m.policy.Load() }

// each calls f for every model that has a state, the shared one as "".
func (m *models) each(f func(name string, m *model)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f("", m.shared)
	for name, one := range m.byName {
		f(name, one)
	}
}

func (m *models) add(name string) *model {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.byName[name]; found != nil {
		return found
	}
	if len(m.byName) >= maxModels {
		return m.shared
	}
	found := m.create(name)
	m.byName[name] = found
	return found
}

func (m *model) bytesPerToken() float64 {
	if bits := m.ratio.Load(); bits != 0 {
		return math.Float64frombits(bits)
	}
	return initialBytesPerToken
}

// learnRatio moves the ratio by a sixteenth of the way towards one prompt's,
// the first prompt sets it. Prompts under 64 tokens are mostly template.
func (m *model) learnRatio(bytes, tokens int64) {
	if tokens < 64 || bytes <= 0 {
		return
	}
	seen := min(max(float64(bytes)/float64(tokens), 0.25), 64)
	for {
		old := m.ratio.Load()
		next := seen
		if old != 0 {
			was := math.Float64frombits(old)
			next = was + (seen-was)/16
		}
		if m.ratio.CompareAndSwap(old, math.Float64bits(next)) {
			return
		}
	}
}
