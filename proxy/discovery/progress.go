package discovery

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"time"

	"kvca/proxy/backend"
)

// questionWait bounds one question to a file system or to DNS.
const questionWait = 5 * time.Second

// progress is a source's spec, and what became of its questions. Only its counters
// may be read by others than the source's goroutine.
type progress struct {
	spec string
	log  *slog.Logger

	failures atomic.Uint64
	success  atomic.Int64 // when a question last was answered, in ns since 1970; 0 never

	failing string // the last failure's text, until something is answered
	noted   string // the last note's text
}

func newProgress(spec string, o Options) progress {
	return progress{spec: spec, log: o.Logger.With("source", spec)}
}

// String is the spec.
func (p *progress) String() string { return p.spec }

// health is what metrics say of a source.
func (p *progress) health() (failures uint64, success time.Time) {
	if at := p.success.Load(); at != 0 {
		success = time.Unix(0, at)
	}
	return p.failures.Load(), success
}

// ok takes in an answer.
func (p *progress) ok() {
	p.success.Store(time.Now().UnixNano())
	if p.failing != "" {
		p.failing = ""
		p.log.Info("discovery answers again")
	}
}

// failed takes in that there was none: the first of its kind is a warning.
func (p *progress) failed(err error) {
	p.failures.Add(1)
	level := slog.LevelWarn
	if p.failing == err.Error() {
		level = slog.LevelDebug
	}
	p.failing = err.Error()
	p.log.Log(context.Background(), level, "discovery failed, the last backends stay", "error", err)
}

// note warns of what is odd in an answer, once until something else is; nil for
// nothing.
func (p *progress) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != p.noted {
		p.failures.Add(1)
		p.log.Warn("discovery found what it can't use", "error", err)
	}
	p.noted = text
}

// poll asks every now and then until ctx ends, and tells what has changed.
func (p *progress) poll(ctx context.Context, every time.Duration, ask func(context.Context) ([]backend.Config, error), found func([]backend.Config)) {
	var t teller
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, questionWait)
		list, err := ask(limit)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.failed(err)
		default:
			p.ok()
			t.tell(p, list, found)
		}
		pause(ctx, jitter(every))
	}
}

// teller tells sets that differ from the one before.
type teller struct {
	last []backend.Config
	told bool
	over bool // it was longer than it may be
}

func (t *teller) tell(p *progress, list []backend.Config, found func([]backend.Config)) {
	over := len(list) > maxFound
	if over && !t.over {
		p.log.Warn("discovery found too many backends", "found", len(list), "taken", maxFound)
	}
	t.over, list = over, list[:min(len(list), maxFound)]
	if t.told && len(t.last) == len(list) && (len(list) == 0 || reflect.DeepEqual(t.last, list)) {
		return
	}
	t.last, t.told = list, true
	found(list)
}

// pause waits, or ends with ctx.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// jitter keeps nodes out of step: 0.9 to 1.1 times d.
func jitter(d time.Duration) time.Duration {
	return time.Duration((0.9 + 0.2*rand.Float64()) * float64(d))
}
