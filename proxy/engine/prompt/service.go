package prompt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"kvca/state/cbr"
)

// maxModels bounds the models that something is known of.
const maxModels = 1024

var errClosed = errors.New("the service is closed")

// Service finds the tokens of requests.
type Service struct {
	cfg    Config
	cache  *cache
	models *lru.Cache[string, *model]
	cores  chan struct{} // held while tokenizing locally
	count  counters

	ctx  context.Context // of calls; ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup // flights

	mu         sync.Mutex
	closed     bool
	flights    map[uint64]*flight // by key, while others may join
	inFlight   int
	background int
	bodyBytes  int64
	busy       map[string]int // calls in flight by engine, none without
}

// New returns a service. Close it after use.
func New(c Config) (*Service, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	models, err := lru.New[string, *model](maxModels)
	if err != nil {
		return nil, err
	}
	c = c.withDefaults(runtime.GOMAXPROCS(0))
	s := &Service{
		cfg: c, cache: newCache(c.CacheBytes), models: models, cores: make(chan struct{}, c.LocalParallel),
		flights: map[uint64]*flight{}, busy: map[string]int{},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close ends all calls and waits for them. Requests that come later find nothing
// but what is remembered.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}

func (s *Service) model(name string) *model {
	if m, ok := s.models.Get(name); ok {
		return m
	}
	m := new(model)
	if earlier, ok, _ := s.models.PeekOrAdd(name, m); ok {
		return earlier
	}
	return m
}

// Tokens returns the tokens of a request, or those of an earlier turn where they
// can't be had within the budget. Any goroutine may call it.
func (s *Service) Tokens(ctx context.Context, r *Request) (Answer, *Failure) {
	begin := time.Now()
	answer, failure := s.tokens(ctx, r)
	if failure != nil {
		if e := s.earlier(r); e != nil {
			answer = r.answer(e, FromEarlier)
			answer.Exact, answer.Miss, failure = false, failure, nil
		}
	}
	s.count.request(&answer, failure, time.Since(begin))
	return answer, failure
}

func (s *Service) tokens(ctx context.Context, r *Request) (Answer, *Failure) {
	if e := s.cache.get(r.Key); e != nil {
		return r.answer(e, FromCache), nil
	}
	if r.Endpoint == cbr.Completions {
		if ids, several := givenIDs(r.Body); ids != nil {
			return r.answer(&entry{tokens: ids, several: several}, FromBody), nil
		}
	}
	if r.Endpoint != cbr.Chat && r.Endpoint != cbr.Completions {
		return Answer{}, failed(UnsupportedEndpoint, "tokens of requests to %s can't be asked for", r.Endpoint)
	}
	f, failure := s.join(r)
	if failure != nil {
		return Answer{}, failure
	}
	if failure := s.wait(ctx, f, s.cfg.budget(r.Bytes)); failure != nil {
		return Answer{}, failure
	}
	return r.answer(f.entry, f.entry.source), nil
}

// earlier is the newest of the turns before whose tokens are remembered.
func (s *Service) earlier(r *Request) *entry {
	for _, key := range r.Earlier {
		if e := s.cache.get(key); e != nil {
			return e
		}
	}
	return nil
}

func (r *Request) answer(e *entry, source string) Answer {
	a := Answer{Exact: true, Several: e.several, Source: source}
	a.Prompt.Tokens, a.Prompt.Media = e.tokens, e.media
	a.Prompt.LoRA, a.Prompt.Salt = r.LoRA, r.Salt
	if r.Salt == "" {
		a.Prompt.Salt = e.salt
	}
	return a
}
