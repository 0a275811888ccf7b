package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kvca/proxy/backend"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// sink keeps the sets that a source tells.
type sink struct {
	mu   sync.Mutex
	sets [][]backend.Config
}

func (s *sink) found(list []backend.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = append(s.sets, list)
}

// last is the newest set, once all goroutines wait.
func (s *sink) last() []backend.Config {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sets) == 0 {
		return nil
	}
	return s.sets[len(s.sets)-1]
}

func (s *sink) told() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sets)
}

// show is a set in short: id or id=url, with ! for draining.
func show(list []backend.Config) string {
	var parts []string
	for _, c := range list {
		part := c.ID
		if "http://"+c.ID != c.URL {
			part += "=" + c.URL
		}
		if c.Draining {
			part += "!"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func (s *sink) want(t *testing.T, want string) {
	t.Helper()
	if got := show(s.last()); got != want {
		t.Fatalf("found %q, want %q", got, want)
	}
}

// follow runs a source until the test ends.
func follow(t *testing.T, s Source) *sink {
	t.Helper()
	to := new(sink)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx, to.found) }()
	t.Cleanup(func() { cancel(); <-done })
	return to
}

// mustParse makes a source of a spec.
func mustParse(t *testing.T, spec string, o Options) Source {
	t.Helper()
	s, err := Parse(spec, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fakePool is a pool whose backends have as many requests as the test says.
type fakePool struct {
	mu       sync.Mutex
	backends map[string]*backend.Status
	configs  map[string]backend.Config
	active   map[string]int64
	done     []string
	refuse   map[string]bool
}

func newPool() *fakePool {
	return &fakePool{backends: map[string]*backend.Status{}, configs: map[string]backend.Config{}, active: map[string]int64{}, refuse: map[string]bool{}}
}

func (p *fakePool) note(what, id string) { p.done = append(p.done, what+" "+id) }

func (p *fakePool) Add(c backend.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse[c.ID] {
		return fmt.Errorf("add backend %s: refused", c.ID)
	}
	if p.backends[c.ID] != nil {
		return backend.ErrExists
	}
	p.backends[c.ID] = &backend.Status{ID: c.ID, Health: "healthy"}
	p.configs[c.ID] = c
	p.note("add", c.ID)
	return nil
}

func (p *fakePool) Change(c backend.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.backends[c.ID] == nil {
		return backend.ErrUnknown
	}
	p.configs[c.ID] = c
	p.note("change", c.ID)
	return nil
}

func (p *fakePool) Remove(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.backends[id] == nil {
		return backend.ErrUnknown
	}
	delete(p.backends, id)
	p.note("remove", id)
	return nil
}

func (p *fakePool) Drain(id string) error   { return p.setHealth(id, "draining", "drain") }
func (p *fakePool) Undrain(id string) error { return p.setHealth(id, "healthy", "undrain") }

func (p *fakePool) setHealth(id, health, what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.backends[id] == nil {
		return backend.ErrUnknown
	}
	p.backends[id].Health = health
	p.note(what, id)
	return nil
}

func (p *fakePool) Status() []backend.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []backend.Status
	for id, s := range p.backends {
		one := *s
		one.Active = p.active[id]
		list = append(list, one)
	}
	return list
}

func (p *fakePool) setActive(id string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active[id] = n
}

// happened gives what was done since the last call.
func (p *fakePool) happened() string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.done = nil }()
	return strings.Join(p.done, ", ")
}

func (p *fakePool) ids() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ids []string
	for id := range p.backends {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// said is a source that says what a test says.
type said struct {
	name string
	sets chan []backend.Config
}

func (s *said) String() string { return s.name }

func (s *said) Run(ctx context.Context, found func([]backend.Config)) {
	for {
		select {
		case <-ctx.Done():
			return
		case list := <-s.sets:
			found(list)
		}
	}
}

// say tells a set of backends by their IDs; an ID that ends in ! drains.
func (s *said) say(ids ...string) {
	list := []backend.Config{}
	for _, id := range ids {
		list = append(list, config(id))
	}
	s.sets <- list
	synctest.Wait()
}

func config(id string) backend.Config {
	name, drains := strings.CutSuffix(id, "!")
	c, err := backend.Config{ID: name, URL: "http://" + name + ":80", Draining: drains}.Complete()
	if err != nil {
		panic(err)
	}
	return c
}

// kept runs a keeper over sources in a bubble.
type kept struct {
	*Keeper
	pool    *fakePool
	sources []*said
	logs    *logs
}

func inKeeper(t *testing.T, sources int, test func(t *testing.T, k *kept)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		k := &kept{pool: newPool(), logs: new(logs)}
		var list []Source
		for i := range sources {
			s := &said{name: fmt.Sprint("source-", i), sets: make(chan []backend.Config)}
			k.sources = append(k.sources, s)
			list = append(list, s)
		}
		k.Keeper = NewKeeper(k.pool, list, k.logs.logger(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); k.Run(ctx) }()
		defer func() { cancel(); <-done }()
		test(t, k)
	})
}

func (k *kept) want(t *testing.T, want string) {
	t.Helper()
	if got := k.pool.happened(); got != want {
		t.Fatalf("happened: %q, want %q", got, want)
	}
}

// later lets time pass.
func later(d time.Duration) { time.Sleep(d); synctest.Wait() }
