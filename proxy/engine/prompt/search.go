package prompt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"kvca/state/ring"
)

// maxTurns is how many engines are asked at most, one after another.
const maxTurns = 3

// turns are the engines to ask, the first one first: by rendezvous, so that the
// same prompt asks the same engine and load spreads. Prompts without a name are
// spread by chance.
func turns(key uint64, engines []Engine) []Engine {
	type turn struct {
		score  uint64
		engine Engine
	}
	if key == 0 {
		key = rand.Uint64()
	}
	all := make([]turn, len(engines))
	for i, e := range engines {
		all[i] = turn{ring.Mix(key ^ ring.Key(e.ID())), e}
	}
	slices.SortStableFunc(all, func(a, b turn) int { return cmp.Compare(b.score, a.score) })
	list := make([]Engine, 0, maxTurns)
	for _, t := range all[:min(len(all), maxTurns)] {
		list = append(list, t.engine)
	}
	return list
}

// search tries the flight's ways in turn until one can tell.
func (s *Service) search(f *flight) (*entry, *Failure) {
	t := inspect(f.endpoint, f.body)
	if t.media { // a picture's tokens are more than the bytes of its name
		f.limit += 1 << 20
		f.media = len(f.body)
	}
	last := failed(NoTokenizer, "model %s: no engine has a tokenizer to ask", f.name)
	stuck := false // engines can't tell; what is local still may
	for _, w := range f.plan {
		if stuck && w != wayLocal {
			continue
		}
		if failure := t.beyond(w); failure != nil {
			last = failure
			continue
		}
		epoch := f.model.ways[w].epoch.Load()
		got, err := s.ask(f.ctx, w, f)
		if err == nil {
			return f.arrive(w, epoch, t, got)
		}
		next, failure := s.verdict(f, w, err)
		last, stuck = failure, !next
		if failure.Reason == Deadline {
			break
		}
	}
	if problem := f.model.mistaken(); last.Reason == NoTokenizer && problem != "" {
		last = failed(Mismatch, "model %s: %s", f.name, problem)
	}
	return nil, last
}

// arrive makes an entry of what a way found.
func (f *flight) arrive(w way, epoch uint32, t traits, got found) (*entry, *Failure) {
	f.model.worked(w)
	if t.media && !got.expanded {
		return nil, failed(MediaUnknown, "%s does not count the tokens of media", w)
	}
	e := &entry{tokens: got.tokens, media: got.media, salt: got.salt, several: got.several, source: w.source()}
	e.by, e.epoch = &f.model.ways[w], epoch
	return e, nil
}

// beyond says why a way can't be asked about such a request; nil where it can.
func (t traits) beyond(w way) *Failure {
	switch {
	case w == wayRender:
		return nil
	case t.media:
		return failed(MediaUnknown, "only a renderer knows the tokens of media")
	case t.member != "":
		return failed(UnsupportedEndpoint, "only a renderer knows what %s does to the prompt", t.member)
	}
	return nil
}

// verdict says what an error of a way means, and whether the next one is tried.
func (s *Service) verdict(f *flight, w way, err error) (next bool, failure *Failure) {
	var own *Failure
	switch {
	case errors.As(err, &own):
		return false, own
	case f.ctx.Err() != nil:
		if errors.Is(f.ctx.Err(), context.DeadlineExceeded) { // and not that nobody waits any more
			f.model.failing(w, err.Error())
		}
		return false, &Failure{Deadline, err}
	case w == wayLocal:
		f.model.failing(w, err.Error())
		return true, &Failure{EngineError, fmt.Errorf("tokenize locally: %w", err)}
	case meansAbsent(err, f.model.works(w)):
		f.model.isAbsent(w, time.Now().Add(s.cfg.RetryAfter), err.Error())
		return true, &Failure{NoTokenizer, err}
	case errors.Is(err, errNoPrompt):
		return false, &Failure{UnsupportedEndpoint, err}
	}
	f.model.failing(w, err.Error())
	return false, &Failure{EngineError, err}
}

// ask asks one way: the first engine that answers at all, or nobody.
func (s *Service) ask(ctx context.Context, w way, f *flight) (found, error) {
	if w == wayLocal {
		return s.askLocal(ctx, f)
	}
	err := error(failed(NoTokenizer, "model %s: no engine to ask", f.name))
	for _, engine := range f.engines {
		if !s.enter(engine.ID(), s.cfg.MaxPerEngine) {
			return found{}, failed(Overloaded, "%s has %d calls in flight", engine.ID(), s.cfg.MaxPerEngine)
		}
		var got found
		got, err = dialects[w](ctx, &call{engine: engine, endpoint: f.endpoint, body: f.body, limit: f.limit, media: f.media})
		s.exit(engine.ID())
		if err == nil || !meansNext(err) || ctx.Err() != nil {
			return got, err
		}
	}
	return found{}, err
}

// maxLocal bounds how many prompts wait for a core.
const maxLocal = 256

// askLocal takes a core; so many may wait for one, as long as the call may take.
func (s *Service) askLocal(ctx context.Context, f *flight) (found, error) {
	local := s.cfg.Local(f.name)
	if local == nil {
		return found{}, errors.New("the model's files are gone")
	}
	if !s.enter("", maxLocal) {
		return found{}, failed(Overloaded, "%d prompts wait to be tokenized locally", maxLocal)
	}
	defer s.exit("")
	select {
	case s.cores <- struct{}{}:
		defer func() { <-s.cores }()
	case <-ctx.Done():
		return found{}, ctx.Err()
	}
	ids, err := local.Tokens(f.endpoint, f.body)
	if err == nil && len(ids) > f.limit {
		err = fmt.Errorf("%d token ids: want at most %d for this prompt", len(ids), f.limit)
	}
	return needTokens(found{tokens: ids}, err)
}

// enter counts one more call to an engine, unless there are too many.
func (s *Service) enter(engine string, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[engine] >= most {
		return false
	}
	s.busy[engine]++
	return true
}

func (s *Service) exit(engine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[engine]--; s.busy[engine] <= 0 {
		delete(s.busy, engine)
	}
}
