package jinja

import (
	"fmt"
	"strings"
	"time"
)

// Template is a compiled template. Any number of goroutines may render it.
type Template struct {
	body     body
	iterates bool
	steps    int // of a rendering
}

// MaxSource is how long a template may be, in bytes.
const MaxSource = 4 << 20

// Compile reads a template.
func Compile(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > MaxSource {
		return nil, fmt.Errorf("template of more than %d MiB", MaxSource>>20)
	}
	p := &parser{tokens: lex(source)}
	b := p.body()
	return &Template{body: b, iterates: p.survey.iteratesContent(), steps: MaxSteps}, nil
}

// IteratesContent is whether the template loops over the parts of a message's
// content, and so wants them as a list.
func (t *Template) IteratesContent() bool { return t.iterates }

// Render renders the template with these variables, which stay as they are. Now is
// what strftime_now tells.
func (t *Template) Render(variables map[string]Value, now func() time.Time) (s string, err error) {
	defer catch(&err)
	var out strings.Builder
	f := &frame{run: &run{out: &out, steps: t.steps, now: now}}
	for n, v := range variables {
		f.set(n, v)
	}
	top := f.inner()
	if t.body.exec(top) != onward {
		return "", fmt.Errorf("break or continue outside of a loop")
	}
	return out.String(), nil
}
