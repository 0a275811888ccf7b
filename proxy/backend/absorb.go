package backend

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// restarted starts a new generation: what was learned of the cache is void.
func (w *watcher) restarted(sign string) {
	w.mu.Lock()
	w.engine.generation++
	w.mu.Unlock()
	w.pool.slots.Void(w.facts)
	w.pool.log.Warn("backend restarted", "backend", w.config.ID, "sign", sign)
}

// process says whether a scrape met the same process as the one before.
type process uint8

const (
	processUnknown process = iota
	processSame
	processNew
)

// scrape reads the engine's metrics into the facts that decisions read.
func (w *watcher) scrape(ctx context.Context) process {
	ctx, cancel := context.WithTimeout(ctx, w.pool.config.HealthTimeout)
	defer cancel()
	var load engineLoad
	status, err := w.get(ctx, "/metrics", func(body []byte) error { load = parseMetrics(body); return nil })
	w.planScrape(status, load)
	if err == nil && status == http.StatusOK {
		w.scrapeMisses = 0
		return w.absorb(load)
	}
	if err == nil && absent(status) {
		w.publishLoad(engineLoad{})
		return processUnknown
	}
	w.scrapeFailed(ctx, status, err)
	return processUnknown
}

func (w *watcher) scrapeFailed(ctx context.Context, status int, err error) {
	if ctx.Err() == context.Canceled {
		return
	}
	w.count.scrapeFailures.Add(1)
	if w.scrapeMisses++; w.scrapeMisses >= staleScrapes {
		w.publishLoad(engineLoad{})
	}
	if err == nil {
		err = fmt.Errorf("status %d", status)
	}
	w.pool.log.Debug("backend metrics not read", "backend", w.config.ID, "error", err)
	if refused(err) {
		w.probeNow()
	}
}

// planScrape sets the time of the next scrape: soon while the backend works, ever
// later while it is idle.
func (w *watcher) planScrape(status int, load engineLoad) {
	busy := load.Running+load.Waiting > 0 || w.pool.slots.Active(w.facts) > 0
	switch {
	case absent(status):
		w.scrapeEvery = noMetricsRetry
	case busy || w.scrapeEvery == noMetricsRetry:
		w.scrapeEvery = w.pool.config.ScrapeInterval
	default:
		w.scrapeEvery = min(2*w.scrapeEvery, max(idleScrapeHealth*w.pool.config.HealthInterval, w.pool.config.ScrapeInterval))
	}
	w.nextScrape = time.Now().Add(jitter(w.scrapeEvery))
}

// dueScrape brings the next scrape forward when an idle backend has work again.
func (w *watcher) dueScrape() time.Time {
	if usual := w.pool.config.ScrapeInterval; w.scrapeEvery > usual && w.scrapeEvery < noMetricsRetry && w.pool.slots.Active(w.facts) > 0 {
		return w.nextScrape.Add(usual - w.scrapeEvery)
	}
	return w.nextScrape
}

// absorb takes in what the engine said.
func (w *watcher) absorb(load engineLoad) process {
	p := w.identify(load)
	if p == processNew {
		w.restarted("metrics")
	}
	w.publishLoad(load)
	tokens := load.CacheTokens
	w.mu.Lock()
	if w.config.CacheTokens > 0 {
		tokens = w.config.CacheTokens
	}
	w.mu.Unlock()
	if tokens != w.cacheTokens || load.BlockTokens != w.blockTokens {
		w.cacheTokens, w.blockTokens = tokens, load.BlockTokens
		w.pool.slots.SetCache(w.facts, tokens, load.BlockTokens)
	}
	return p
}

// workersApart is how far apart, in seconds, the workers of one engine may start.
const workersApart = 60

// identify compares the process with the one met before. A start time that goes
// back is another worker behind the same address, no restart. After an outage one
// that goes far back is another engine: its address has passed to an older one.
func (w *watcher) identify(load engineLoad) (p process) {
	defer func() {
		if w.work = load.Work; p == processNew {
			w.start = load.Start
		}
		w.start = max(w.start, load.Start)
	}()
	switch {
	case load.Start > 0 && w.start > 0 && load.Start > w.start+0.5:
		return processNew
	case load.Start > 0 && w.returning && load.Start < w.start-workersApart:
		return processNew
	case load.Start > 0 && w.start > 0:
		return processSame
	case load.Start == 0 && load.Work < w.work:
		return processNew
	}
	return processUnknown
}

func (w *watcher) publishLoad(load engineLoad) {
	w.mu.Lock()
	w.engine.load = load
	w.mu.Unlock()
	const most = 1 << 20 // requests; what is beyond is no number to route by
	w.facts.SetUsage(load.KVUsage, int64(min(load.Running, most)))
	w.facts.SetBypass(int64(min(load.Running+load.Waiting, most)) - w.pool.slots.Active(w.facts))
}
