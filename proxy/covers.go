package proxy

import (
	"sync"
	"time"
)

// covers remembers which models the index covered lately, so that the loss of whoever
// told of them is not silent.
type covers struct {
	mu   sync.Mutex
	last map[string]time.Duration // when a model was covered
}

const (
	// lossSaid is for how long it is said that a model's index was lost: after that it
	// has been taken away on purpose.
	lossSaid = time.Hour
	// noted is how long one note of a model will do.
	noted = time.Second
)

// is notes that the index covers a model.
func (c *covers) is(model string, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, known := c.last[model]; known && now-last < noted || !known && len(c.last) >= creditModels {
		return
	}
	c.last[model] = now
}

// was is whether the index covered a model within the last hour.
func (c *covers) was(model string, now time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.last[model]
	return known && now-last < lossSaid
}

// lost are the models that it covered and that none of covered is.
func (c *covers) lost(now time.Duration, covered []string) (models []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	is := make(map[string]bool)
	for _, model := range covered {
		is[model] = true
	}
	for model, last := range c.last {
		if !is[model] && now-last < lossSaid {
			models = append(models, model)
		}
	}
	return models
}
