package jinja

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func render(source string, vars map[string]Value) (string, error) {
	t, err := Compile(source)
	if err != nil {
		return "", err
	}
	return t.Render(vars, clock)
}

func TestRenderingIsBounded(t *testing.T) {
	for name, source := range map[string]string{
		"loops in loops":     `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`,
		"recursion":          `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`,
		"recursive loop":     `{% set l = [1] %}{% for x in l recursive %}{{ loop(l) }}{% endfor %}`,
		"string of any size": `{{ 'aaaaaaaaaaaaaaaa' * 100000000 }}`,
		"doubling string":    `{% set n = namespace(s='a') %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}`,
		"doubling list":      `{% set n = namespace(s=[1]) %}{% for i in range(100) %}{% set n.s = n.s + n.s %}{% endfor %}`,
		"output":             `{% set s = 'a' * 1000000 %}{% for i in range(1000) %}{{ s }}{% endfor %}`,
		"replace":            `{% set s = 'a' * 60000 %}{{ s.replace('a', s) }}`,
		"join":               `{% set s = 'a' * 60000 %}{{ s.join(s.split('')) if false else (s | list | join(s)) }}`,
		"range":              `{{ range(100001) | length }}`,
	} {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Compile(source)
			if err != nil {
				t.Fatal(err)
			}
			tmpl.steps = MaxSteps / 8 // to be done sooner
			if out, err := tmpl.Render(nil, clock); err == nil {
				t.Errorf("rendered %d bytes, want an error", len(out))
			}
		})
	}
}

func TestNestedSourceIsBounded(t *testing.T) {
	for name, source := range map[string]string{
		"parentheses": "{{ " + strings.Repeat("(", 20_000) + "1" + strings.Repeat(")", 20_000) + " }}",
		"nots":        "{{ " + strings.Repeat("not ", 20_000) + "1 }}",
		"signs":       "{{ " + strings.Repeat("-", 20_000) + "1 }}",
		"blocks":      strings.Repeat("{% if 1 %}", 20_000) + strings.Repeat("{% endif %}", 20_000),
		"size":        strings.Repeat("x", MaxSource+1),
	} {
		if _, err := Compile(source); err == nil {
			t.Errorf("%s: compiled, want an error", name)
		}
	}
}

// What Python prints with an address, or as an integer of any size, is refused rather
// than printed otherwise.
func TestWhatCannotBePrintedAlikeIsRefused(t *testing.T) {
	for _, source := range []string{
		`{{ d.items }}`, `{{ [1] | map('string') }}`, `{{ 9223372036854775807 + 1 }}`, `{{ namespace() }}`, `{{ range }}`, `{{ {1.5: 2} }}`,
	} {
		if out, err := render(source, map[string]Value{"d": &Dict{}}); err == nil {
			t.Errorf("%s: got %q, want an error", source, out)
		}
	}
}

func TestRaisedExceptionIsTold(t *testing.T) {
	_, err := render(`{{ raise_exception('roles must alternate') }}`, nil)
	if !errors.Is(err, ErrRaised) || !strings.Contains(err.Error(), "roles must alternate") {
		t.Errorf("got %v", err)
	}
}

func TestSyntaxErrorsNameTheirLine(t *testing.T) {
	_, err := Compile("a\nb\n{{ 1 + }}\n")
	if err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("got %v", err)
	}
}

func TestTemplatesRenderConcurrently(t *testing.T) {
	tmpl, err := Compile(`{% macro m(x) %}{{ x }}{% endmacro %}{% for i in l %}{{ m(i) }}{% set q = i %}{{ loop.changed(i) }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	shared := NewList(int64(1), int64(1), int64(2))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				out, err := tmpl.Render(map[string]Value{"l": shared}, clock)
				if err != nil || out != "1True1False2True" {
					t.Errorf("got %q, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestJSONIsReadAsPythonReadsIt(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":2,"b":3}`:     `{'b': 3, 'a': 2}`,
		`[1, 1.0, 1e2, -0, -0.0]`: `[1, 1.0, 100.0, 0, -0.0]`,
		`123456789012345678901`:   `123456789012345678901`,
		`1e400`:                   `inf`,
		`"\u00e9\ud83d\ude00"`:    `é😀`,
		`{"\u0000i5": 1}`:         `{'\x00i5': 1}`,
	} {
		v, err := ReadJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := str(v); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "{", "[1,]", `"\ud800"`, "NaN", "1 2", strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		if _, err := ReadJSON([]byte(text)); err == nil {
			t.Errorf("%.20s: read, want an error", text)
		}
	}
}

func FuzzRender(f *testing.F) {
	eachGoldenSource(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Compile(source)
		if err != nil {
			return
		}
		one, err := tmpl.Render(map[string]Value{"s": "Hello", "n": NewList(int64(3), int64(1)), "d": &Dict{}}, clock)
		again, errAgain := tmpl.Render(map[string]Value{"s": "Hello", "n": NewList(int64(3), int64(1)), "d": &Dict{}}, clock)
		if one != again || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Errorf("two renderings differ: %q, %v and %q, %v", one, err, again, errAgain)
		}
	})
}
