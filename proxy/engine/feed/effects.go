package feed

import "time"

// The machine's effects, by the worker.

func (w *worker) apply(payload []byte) (outcome, error) { return w.keeper.apply(payload) }

func (w *worker) reset(why Reason) {
	if why == ResetRestart || why == ResetDown || why == ResetWrapped {
		w.keeper.groups.Forget() // it may serve another model now
	}
	w.config.Sink.Reset()
	w.config.Logger.Debug("event source reset", "endpoint", w.config.Endpoint, "rank", w.config.Rank, "reason", why.String())
}

func (w *worker) setLive(live bool) { w.config.Sink.SetLive(live) }

func (w *worker) ask(id, from uint64) { w.fetcher.ask(id, from) }

func (w *worker) hangUp() { w.fetcher.hangUp() }

// telling is what the log was told last.
type telling struct {
	problem bool
	at      time.Time
}

// tellEvery is the least time between two lines about problems: their texts have
// numbers in them.
const tellEvery = 10 * time.Second

// tell makes the turn's results visible.
func (w *worker) tell(dropped uint64) {
	m := w.machine
	before := w.status.Load()
	s := &snapshot{
		state: m.state(), problem: m.problem(), silent: m.silence.silent,
		next: m.floor(), counts: m.counts, last: w.last,
	}
	s.counts.dropped += dropped
	w.status.Store(s)
	if s.problem == before.problem || (s.problem != "") == w.telling.problem && time.Since(w.telling.at) < tellEvery {
		return
	}
	w.telling = telling{s.problem != "", time.Now()}
	log := w.config.Logger.With("endpoint", w.config.Endpoint, "rank", w.config.Rank)
	if s.problem == "" {
		log.Info("event source is whole again")
		return
	}
	log.Warn("event source has a problem", "problem", s.problem)
}
