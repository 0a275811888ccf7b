package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The bounds of one rendering.
const (
	// MaxOutput is how long a rendering, or any string on the way to it, may be in bytes.
	MaxOutput = 64 << 20
	// MaxSteps bounds statements, calls and turns of loops, and long copies by their
	// length: one to three seconds of work.
	MaxSteps = 2_000_000
	// maxDepth bounds calls within calls.
	maxDepth = 200
	// stepBytes is how many copied bytes count as one step.
	stepBytes = 1 << 10
)

// fault carries an error out of evaluation; nothing else panics on purpose.
type fault struct{ err error }

func fail(format string, args ...any) { panic(fault{fmt.Errorf(format, args...)}) }

func failAt(line int, format string, args ...any) {
	panic(fault{fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))})
}

// ErrRaised is what a template's raise_exception gives: the engine refuses the
// request too.
var ErrRaised = errors.New("refused by the template")

// catch turns a fault into an error.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case fault:
		*err = r.err
	default:
		panic(r)
	}
}

// run is one rendering.
type run struct {
	out   *strings.Builder
	steps int // that are left
	depth int
	now   func() time.Time
}

func (r *run) step(n int) {
	if r.steps -= n; r.steps < 0 {
		fail("more steps than the %d of a rendering", MaxSteps)
	}
}

// grown accounts for a new string or list of n bytes.
func (r *run) grown(n int) {
	if n > MaxOutput {
		fail("a string of more than %d MiB", MaxOutput>>20)
	}
	r.step(n / stepBytes)
}

func (r *run) write(s string) {
	if r.out.Len()+len(s) > MaxOutput {
		fail("more than %d MiB of output", MaxOutput>>20)
	}
	r.step(1 + len(s)/stepBytes)
	r.out.WriteString(s)
}

func (r *run) enter() {
	if r.depth++; r.depth > maxDepth {
		fail("calls nested more than %d deep", maxDepth)
	}
}

func (r *run) leave() { r.depth-- }

// capture gives what do writes in place of writing it.
func (r *run) capture(do func()) string {
	var b strings.Builder
	before := r.out
	r.out = &b
	do()
	r.out = before
	return b.String()
}

// frame is a scope: names set in it are not seen outside.
type frame struct {
	run    *run
	parent *frame
	names  []string
	values []Value
}

func (f *frame) inner() *frame { return &frame{run: f.run, parent: f} }

func (f *frame) set(name string, v Value) {
	for i, n := range f.names {
		if n == name {
			f.values[i] = v
			return
		}
	}
	f.names, f.values = append(f.names, name), append(f.values, v)
}

func (f *frame) get(name string) Value {
	for s := f; s != nil; s = s.parent {
		for i, n := range s.names {
			if n == name {
				return s.values[i]
			}
		}
	}
	if v, ok := globals[name]; ok {
		return v
	}
	return Undefined{name}
}
