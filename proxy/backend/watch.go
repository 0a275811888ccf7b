package backend

import (
	"context"
	"time"
)

const (
	// An unhealthy backend is asked each downInterval, later each downSlow, so that
	// one that returns serves within 5 s.
	downInterval  = time.Second
	downSlow      = 2 * time.Second
	downSlowAfter = time.Minute

	modelsInterval   = 5 * time.Second // adapters come and go at run time
	leastModelsGap   = time.Second     // between readings of the list that are asked for
	modelsSlow       = 30 * time.Second
	noMetricsRetry   = time.Minute // for engines without /metrics
	busyBeat         = 100 * time.Millisecond
	idleBeat         = 500 * time.Millisecond
	beatsPerCheck    = 4                      // at least, in a HealthInterval
	slowStartSteps   = 20                     // speed steps from a tenth to the whole
	leastProbeGap    = 100 * time.Millisecond // between probes that are asked for
	idleScrapeHealth = 8                      // health checks to a scrape of an idle backend
	staleScrapes     = 3                      // scrapes that fail before their facts are dropped
)

// watcher is the one goroutine of a backend: it discovers, checks and scrapes in
// turn. Its fields are its own.
type watcher struct {
	*Backend
	healthPath string
	warned     bool // that it lists no models
	returning  bool // was available, was down, and is being met again

	probedAt   time.Time
	nextHealth time.Time
	nextScrape time.Time
	nextModels time.Time
	modelsAt   time.Time // of the last reading

	modelsRetry  time.Duration // doubles while the model list can't be read
	scrapeEvery  time.Duration
	scrapeMisses int
	cacheTokens  int // last told
	blockTokens  int
	start        float64 // of the engine's process; 0 unknown
	work         float64
}

func (b *Backend) watch(ctx context.Context) {
	defer close(b.done)
	w := &watcher{Backend: b, healthPath: "/health", scrapeEvery: b.pool.config.ScrapeInterval}
	w.first(ctx)
	timer := time.NewTimer(w.pause())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
			w.woken()
		case <-timer.C:
			w.tick(ctx)
		}
		timer.Reset(w.pause())
	}
}

// woken plans what somebody asked for.
func (w *watcher) woken() {
	if asked := w.probedAt.Add(leastProbeGap); asked.Before(w.nextHealth) {
		w.nextHealth = asked
	}
	if !w.relist.Swap(false) {
		return
	}
	if asked := w.modelsAt.Add(leastModelsGap); asked.Before(w.nextModels) {
		w.nextModels = asked
	}
}

// first is the discovery that readiness waits for.
func (w *watcher) first(ctx context.Context) {
	defer w.pool.discovered(w.Backend)
	ctx, cancel := context.WithTimeout(ctx, w.pool.config.DiscoveryTimeout)
	defer cancel()
	w.probe(ctx)
}

func (w *watcher) tick(ctx context.Context) {
	now := time.Now()
	if !now.Before(w.nextHealth) {
		w.probe(ctx)
	}
	if w.isHealthy() && !now.Before(w.dueScrape()) {
		w.scrape(ctx)
	}
	if w.isHealthy() && !now.Before(w.nextModels) {
		w.discover(ctx, false)
	}
	w.change(func(*condition, time.Time) {}) // the speed grows
}

func (w *watcher) isHealthy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cond.health == healthy
}

// probe checks the backend's health. A backend that comes back is met first, so
// that its models and its generation are right when requests return to it.
func (w *watcher) probe(ctx context.Context) {
	w.probedAt = time.Now()
	limit, cancel := context.WithTimeout(ctx, w.pool.config.HealthTimeout)
	v, err := w.ask(limit)
	cancel()
	if v == probeOK && !w.isHealthy() {
		w.meet(ctx)
	}
	w.judged(ctx, v, err)
	w.planHealth()
}

// planHealth counts from the start of the last check, so that one that runs into
// its deadline does not delay the next.
func (w *watcher) planHealth() {
	interval := jitter(w.healthInterval())
	w.nextHealth = w.probedAt.Add(interval)
	if soonest := time.Now().Add(interval / 4); w.nextHealth.Before(soonest) {
		w.nextHealth = soonest
	}
}

func (w *watcher) judged(ctx context.Context, v verdict, err error) {
	if v != probeOK && (ctx.Err() == context.Canceled || exhausted(err)) {
		return // it is the watcher that ends, or the gateway that lacks something
	}
	excused := w.begun.Swap(false)
	if v != probeOK {
		w.count.probeFailures.Add(1)
	}
	w.change(func(c *condition, now time.Time) {
		if err != nil {
			c.lastErr = err.Error()
		}
		c.probed(v, excused, now)
	})
}

// ask does the check. An engine without /health is asked for its models.
func (w *watcher) ask(ctx context.Context) (verdict, error) {
	status, err := w.get(ctx, w.healthPath, nil)
	if err == nil && absent(status) && w.healthPath != "/v1/models" {
		w.healthPath = "/v1/models"
		status, err = w.get(ctx, w.healthPath, nil)
	}
	return judge(status, err)
}

// meet reads what a backend is before it is used, for the first time or again.
func (w *watcher) meet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.pool.config.HealthTimeout)
	defer cancel()
	w.mu.Lock()
	suspect := w.cond.gone && w.cond.served
	w.returning = w.cond.served
	w.mu.Unlock()
	same := w.scrape(ctx)
	w.returning = false
	if suspect && same == processUnknown {
		w.restarted("refused connections")
		same = processNew
	}
	w.discover(ctx, same == processNew)
}

// discover reads the models; what was known stays when they can't be read. Other
// models are another engine, unless it is known already that this is a fresh one.
func (w *watcher) discover(ctx context.Context, fresh bool) {
	w.modelsAt = time.Now()
	w.nextModels = w.modelsAt.Add(jitter(modelsInterval))
	ctx, cancel := context.WithTimeout(ctx, w.pool.config.HealthTimeout)
	defer cancel()
	cards, err := w.fetchCards(ctx)
	if err != nil {
		w.pool.log.Debug("backend models not read", "backend", w.config.ID, "error", err)
		w.modelsRetry = min(max(2*w.modelsRetry, downInterval), modelsSlow)
		w.nextModels = time.Now().Add(jitter(w.modelsRetry))
		return
	}
	w.modelsRetry = 0
	if len(cards) == 0 && len(w.Config().Models) == 0 && !w.warned {
		w.warned = true
		w.pool.log.Warn("backend lists no models: configure them", "backend", w.config.ID)
	}
	if !fresh && w.otherModels(cards) {
		w.restarted("other models")
	}
	names, bases := w.setCards(cards)
	if bases {
		w.pool.mu.Lock()
		w.pool.publish()
		w.pool.mu.Unlock()
	}
	if !names {
		return
	}
	w.pool.log.Info("backend models changed", "backend", w.config.ID, "models", w.modelNames())
}

func (b *Backend) modelNames() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.engine.models
}

// healthInterval is the time to the next check.
func (w *watcher) healthInterval() time.Duration {
	usual := w.pool.config.HealthInterval
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cond.health == healthy:
		return usual
	case time.Since(w.cond.since) < downSlowAfter:
		return min(usual, downInterval)
	}
	return downSlow
}

// pause is the time to the next thing to do.
func (w *watcher) pause() time.Duration {
	next := w.nextHealth
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if w.isHealthy() {
		earlier(w.dueScrape())
		earlier(w.nextModels)
	}
	w.mu.Lock()
	slow, open, until := !w.cond.returned.IsZero(), w.cond.breaker.state == breakerOpen, w.cond.breaker.until
	w.mu.Unlock()
	if slow {
		earlier(time.Now().Add(max(w.pool.config.SlowStart/slowStartSteps, time.Millisecond)))
	}
	if open && until.After(time.Now()) && until.Before(w.nextHealth) {
		w.nextHealth = until
		earlier(until)
	}
	return max(w.onBeat(next), 0)
}

// onBeat is the time to next, rounded up to a beat that the pool's watchers share:
// waking the process costs more than a probe, so idle backends are probed together.
func (w *watcher) onBeat(next time.Time) time.Duration {
	beat := busyBeat
	if w.idle() {
		beat = idleBeat
	}
	beat = min(beat, w.pool.config.HealthInterval/beatsPerCheck)
	since := next.Sub(w.pool.started)
	return time.Until(w.pool.started.Add((since + beat - 1) / beat * beat))
}

// idle reports whether nothing happens here that a later look would miss.
func (w *watcher) idle() bool {
	w.mu.Lock()
	calm := w.cond.health == healthy && w.cond.breaker.clean() && w.cond.returned.IsZero()
	w.mu.Unlock()
	return calm && w.scrapeEvery > w.pool.config.ScrapeInterval && w.pool.slots.Active(w.facts) == 0
}

// jitter keeps watchers out of step: 0.9 to 1.1 times d.
func jitter(d time.Duration) time.Duration {
	return time.Duration((0.9 + 0.2*spread()) * float64(d))
}
