package soak

import (
	"fmt"
	"sync"
	"time"
)

// Event is one fault that was done.
type Event struct {
	Fault string
	// Target is a node or a backend, "" where it is about all.
	Target string
	// Detail is what else there is to say of it.
	Detail string
	// Began and Ended are when it could have had an effect, Healed is when nothing
	// of it was left.
	Began, Ended, Healed time.Time
}

// The faults that excuse something.
const (
	NodeKilled     = "a node is killed"
	NoDescriptors  = "a node has no descriptors left"
	BackendKilled  = "a backend is killed"
	BackendGarbage = "a backend answers garbage"
)

// aftermath is how long after a backend's end its streams may still be found cut.
const aftermath = 2 * time.Second

// Failure is a request that did not end as it should have.
type Failure struct {
	Kind Kind
	// Node is where it was sent. Backend is who answered, "" where no answer began.
	Node, Backend string
	// Garbage is what a backend says of its own answer.
	Garbage      string
	Began, Ended time.Time
	// Begun is whether the client had a part of the answer's body.
	Begun  bool
	Status int
	Err    error
}

func (f *Failure) String() string {
	return fmt.Sprintf("%s %v at %s, backend %q, after %v, status %d, begun %v: %.300v",
		f.Began.Format("15:04:05.000"), f.Kind, f.Node, f.Backend, f.Ended.Sub(f.Began).Round(time.Millisecond), f.Status, f.Begun, f.Err)
}

// overlaps is whether the request was under way during the event.
func (f *Failure) overlaps(e *Event, after time.Duration) bool {
	return f.Ended.After(e.Began) && f.Began.Before(e.Ended.Add(after))
}

// Excuse names the fault for which a request may fail, "" for none.
func Excuse(f *Failure, history []Event) string {
	for i := range history {
		if e := &history[i]; excuses(e, f) {
			return e.Fault
		}
	}
	return ""
}

func excuses(e *Event, f *Failure) bool {
	switch e.Fault {
	case NodeKilled, NoDescriptors:
		return e.Target == f.Node && f.overlaps(e, 0)
	case BackendKilled:
		return e.Target == f.Backend && f.Begun && f.overlaps(e, aftermath)
	case BackendGarbage:
		return e.Target == f.Backend && f.Garbage != "" && f.overlaps(e, 0)
	}
	return false
}

// maxFailures bounds those that are kept.
const maxFailures = 10_000

// History is what was done, and what failed. Anybody may add to it.
type History struct {
	mu       sync.Mutex
	events   []Event
	failures []Failure
	dropped  int
}

func (h *History) event(e *Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, *e)
}

func (h *History) failed(f *Failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.failures) == maxFailures {
		h.dropped++
		return
	}
	h.failures = append(h.failures, *f)
}

// Events are the faults that are over.
func (h *History) Events() []Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Event{}, h.events...)
}

// Verdict is what is to be said of the failures.
type Verdict struct {
	// Excused counts failures by the fault that excuses them.
	Excused map[string]int
	// Broken are those that nothing excuses. Untold counts those that were not kept.
	Broken []Failure
	Untold int
}

// Judge looks at all failures. The clients have ended.
func (h *History) Judge() Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	v := Verdict{Excused: map[string]int{}, Untold: h.dropped}
	for i := range h.failures {
		if why := Excuse(&h.failures[i], h.events); why != "" {
			v.Excused[why]++
			continue
		}
		v.Broken = append(v.Broken, h.failures[i])
	}
	return v
}
