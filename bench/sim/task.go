package sim

import (
	"iter"
	"time"
)

// tasks are code that waits in virtual time: a reservation that asks another
// node, pages that wait for credit. Each runs as a coroutine, one at a time, so
// the order of things is the loop's and always the same.
type tasks struct {
	loop    *loop
	running *task
	closed  bool
}

// task is one run of such code.
type task struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// start runs code until it ends or waits for the first time.
func (s *tasks) start(do func()) {
	t := &task{}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		do()
	})
	s.resume(t)
}

func (s *tasks) resume(t *task) {
	before := s.running
	s.running = t
	if _, waits := t.next(); !waits {
		t.stop()
	}
	s.running = before
}

// waiting is one wait of one task.
type waiting struct {
	task   *task
	signal <-chan struct{}
	limit  *event
	got    bool
}

// waits are the waits of one node, in the order in which they began.
type waits struct {
	tasks *tasks
	list  []*waiting
}

// wait lets the running task wait until signal has an element or limit is over.
func (w *waits) wait(signal <-chan struct{}, limit time.Duration) bool {
	s := w.tasks
	select {
	case <-signal:
		return true
	default:
	}
	if s.closed || s.running == nil {
		return false
	}
	one := &waiting{task: s.running, signal: signal}
	one.limit = &event{place: absent, do: func() { w.over(one) }}
	s.loop.move(one.limit, s.loop.now+limit)
	w.list = append(w.list, one)
	one.task.yield(struct{}{})
	return one.got
}

func (w *waits) over(one *waiting) {
	w.forget(one)
	w.tasks.resume(one.task)
}

func (w *waits) forget(one *waiting) {
	for i := range w.list {
		if w.list[i] == one {
			w.list = append(w.list[:i], w.list[i+1:]...)
			return
		}
	}
}

// look resumes the tasks whose signal has come.
func (w *waits) look() {
	for {
		one := w.signalled()
		if one == nil {
			return
		}
		one.got = true
		w.tasks.loop.drop(one.limit)
		w.over(one)
	}
}

func (w *waits) signalled() *waiting {
	for _, one := range w.list {
		select {
		case <-one.signal:
			return one
		default:
		}
	}
	return nil
}

// close ends all waits, as if their time was over: what the tasks do after that
// reaches nobody.
func (w *waits) close() {
	for len(w.list) > 0 {
		one := w.list[0]
		w.tasks.loop.drop(one.limit)
		w.over(one)
	}
}
