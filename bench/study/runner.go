package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// runner works off jobs, several at a time, the longest first.
type runner struct {
	workers  int
	simulate func(context.Context, job) (*Outcome, error)
	// keep is called with each outcome, one at a time.
	keep     func(*Outcome) error
	progress io.Writer
	now      func() time.Time
}

// run does each job once. One that fails doesn't hold up others: all failures are
// returned with what succeeded. It waits for its goroutines.
func (r *runner) run(ctx context.Context, jobs []job) ([]*Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].weight(), jobs[a].weight()) })
	next := make(chan int)
	go func() { // ends with the last job taken, or with ctx
		defer close(next)
		for _, i := range order {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	w := work{runner: r, jobs: jobs, outcomes: make([]*Outcome, len(jobs)), began: r.now(), cancel: cancel}
	var workers sync.WaitGroup
	for range max(r.workers, 1) {
		workers.Go(func() {
			for i := range next {
				w.do(ctx, i)
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil && w.err == nil {
		return w.outcomes, fmt.Errorf("simulate: %w", err)
	}
	return w.outcomes, w.err
}

// work is what one call of run has come to.
type work struct {
	*runner
	jobs     []job
	outcomes []*Outcome // place by place as jobs
	cancel   context.CancelFunc

	mu    sync.Mutex
	err   error
	began time.Time
	told  time.Time
	over  int
	done  float64 // weight of what is over
}

func (w *work) do(ctx context.Context, i int) {
	outcome, err := w.simulate(ctx, w.jobs[i])
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over++
	w.done += w.jobs[i].weight()
	switch {
	case err != nil && ctx.Err() != nil: // interrupted, not failed
		return
	case err != nil:
		w.err = errors.Join(w.err, fmt.Errorf("%v: %w", w.jobs[i], err))
	default:
		w.outcomes[i] = outcome
		if err := w.keep(outcome); err != nil {
			w.err = errors.Join(w.err, err)
			w.cancel() // more work would be lost too
		}
	}
	w.tell()
}

// between is how much time passes between two lines of progress.
const between = 5 * time.Second

func (w *work) tell() {
	now := w.now()
	if w.over < len(w.jobs) && now.Sub(w.told) < between {
		return
	}
	w.told = now
	total := 0.0
	for _, j := range w.jobs {
		total += j.weight()
	}
	passed := now.Sub(w.began)
	left := time.Duration(float64(passed) * (total - w.done) / w.done)
	fmt.Fprintf(w.progress, "study: %d of %d runs, %v passed, about %v left\n",
		w.over, len(w.jobs), passed.Round(time.Second), left.Round(time.Second))
}
