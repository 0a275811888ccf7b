package tenant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	maxFaults = 50
	// The parser's time grows with the square of how deep things nest.
	maxNesting = 32
)

// form takes the file's nodes to values and notes all that is wrong with them. No
// fault shows a value from where secrets stand.
type form struct {
	path   string
	secret bool // keys of mappings aren't shown now
	faults []error
	untold int
}

// place is where a value stands.
type place struct {
	line int
	at   string // the keys that lead to it, from the tenant on
}

func (p place) of(line int, name string) place {
	if p.at != "" {
		name = p.at + "." + name
	}
	return place{line, name}
}

// taker takes the value at a place.
type taker func(n ast.Node, p place)

func (f *form) fault(p place, format string, args ...any) {
	if len(f.faults) == maxFaults {
		f.untold++
		return
	}
	text := fmt.Sprintf(format, args...)
	if p.at != "" {
		text = p.at + ": " + text
	}
	if p.line > 0 {
		text = fmt.Sprintf("%s:%d: %s", f.path, p.line, text)
	} else {
		text = fmt.Sprintf("%s: %s", f.path, text)
	}
	f.faults = append(f.faults, errors.New(text))
}

// err joins all faults.
func (f *form) err() error {
	if f.untold > 0 {
		return errors.Join(append(f.faults, fmt.Errorf("%s: and %d faults more", f.path, f.untold))...)
	}
	return errors.Join(f.faults...)
}

// document parses the text and returns its top node, nil for an empty file.
func (f *form) document(text []byte) ast.Node {
	if depth := nesting(text); depth > maxNesting {
		f.fault(place{}, "nests %d deep: nothing here needs more than %d", depth, maxNesting)
		return nil
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.syntax(err)
		return nil
	}
	var top ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case top != nil:
			f.fault(place{line: lineOf(doc.Body.GetToken())}, "a second document: want one mapping of tenants")
		default:
			top = doc.Body
		}
	}
	return top
}

// nesting is how deep things nest at most, those in texts included: open brackets, or
// dashes in a row, each of which begins a list in a list.
func nesting(text []byte) (deepest int) {
	open, dashes := 0, 0
	for i, c := range text {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		switch {
		case (c == '-' || c == '?') && i+1 < len(text) && text[i+1] == ' ':
			dashes++
		case c != ' ':
			dashes = 0
		}
		deepest = max(deepest, open, dashes)
	}
	return deepest
}

// syntax notes a text that is no YAML. What the parser quotes may be a secret.
func (f *form) syntax(err error) {
	var known yaml.Error
	if !errors.As(err, &known) {
		f.fault(place{}, "no valid YAML")
		return
	}
	message, _, _ := strings.Cut(known.GetMessage(), `"`)
	f.fault(place{line: lineOf(known.GetToken())}, "no valid YAML: %s", strings.TrimRight(message, ": "))
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// mapping hands each value of a mapping to the taker of its key.
func (f *form) mapping(n ast.Node, p place, takers map[string]taker) {
	known := func(name string) bool { return takers[name] != nil }
	f.fields(n, p, known, func(name string, n ast.Node, at place) {
		if take := takers[name]; take != nil {
			take(n, at)
			return
		}
		f.fault(at, "no such key: want %s", meant(name, takers))
	})
}

// meant is what to write in place of a key that isn't there.
func meant(name string, takers map[string]taker) string {
	for word, key := range map[string]string{"rpm": "requests_per_second", "requests_per_minute": "requests_per_second", "tpm": "tokens_per_second", "tokens_per_minute": "tokens_per_second"} {
		if strings.HasPrefix(name, word) && takers[key] != nil {
			return key + ", a 60th of it"
		}
	}
	names := slices.Sorted(maps.Keys(takers))
	return "one of " + strings.Join(names, ", ")
}

// fields hands each key and value of a mapping to take. A key that stands there twice
// is taken once; one that may be a secret is shown only where it is known.
func (f *form) fields(n ast.Node, p place, known func(name string) bool, take func(name string, n ast.Node, at place)) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		f.wrongKind(n, p, "a mapping")
	}
	first := make(map[string]int, len(values))
	for _, v := range values {
		t := v.Key.GetToken()
		at := place{lineOf(t), p.at}
		if !f.secret || known(t.Value) {
			at = p.of(at.line, show(t.Value))
		}
		if line := first[t.Value]; line > 0 {
			f.fault(at, "is there on line %d already: keep one", line)
			continue
		}
		first[t.Value] = max(at.line, 1)
		take(t.Value, v.Value, at)
	}
}

// show shortens what a fault quotes.
func show(text string) string {
	if quoted := fmt.Sprintf("%.64q", text); len(quoted) != len(text)+2 {
		return quoted
	}
	return text
}

// list hands each element of a list to take.
func (f *form) list(n ast.Node, p place, of string, take taker) {
	switch n := n.(type) {
	case nil, *ast.NullNode: // all elements are commented out
	case *ast.SequenceNode:
		for _, v := range n.Values {
			take(v, place{lineOf(v.GetToken()), p.at})
		}
	default:
		f.wrongKind(n, p, "a list of "+of)
	}
}

func (f *form) wrongKind(n ast.Node, p place, want string) {
	is := "YAML's " + n.Type().String()
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		is = "a mapping"
	case *ast.SequenceNode:
		is = "a list"
	case *ast.NullNode:
		is = "empty"
	case *ast.StringNode, *ast.LiteralNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		is = "a single value"
	}
	f.fault(p, "is %s: want %s", is, want)
}

// text reads a single value as it was written.
func (f *form) text(n ast.Node, p place, want string) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case nil:
		f.fault(p, "is empty: want %s", want)
	default:
		f.wrongKind(n, p, want)
	}
	return "", false
}

// number makes the taker of a number between two bounds.
func (f *form) number(into *float64, least, most float64) taker {
	want := fmt.Sprintf("a number from %v to %v", least, most)
	return func(n ast.Node, p place) {
		text, ok := f.text(n, p, want)
		if !ok {
			return
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= least && v <= most) {
			f.fault(p, "%.40q: want %s", text, want)
			return
		}
		*into = v
	}
}

// count makes the taker of a whole number between two bounds.
func (f *form) count(into *int, least, most int) taker {
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	return func(n ast.Node, p place) {
		text, ok := f.text(n, p, want)
		if !ok {
			return
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < least || v > most {
			f.fault(p, "%.40q: want %s", text, want)
			return
		}
		*into = v
	}
}

// duration makes the taker of a duration between two bounds.
func (f *form) duration(into *time.Duration, least, most time.Duration) taker {
	want := fmt.Sprintf("a duration from %v to %v, such as 2s", least, most)
	return func(n ast.Node, p place) {
		text, ok := f.text(n, p, want)
		if !ok {
			return
		}
		v, err := time.ParseDuration(text)
		if err != nil || v < least || v > most {
			f.fault(p, "%.40q: want %s", text, want)
			return
		}
		*into = v
	}
}

// truth makes the taker of a switch.
func (f *form) truth(into *bool) taker {
	return func(n ast.Node, p place) {
		text, ok := f.text(n, p, "true or false")
		if ok && text != "true" && text != "false" {
			f.fault(p, "%.40q: want true or false", text)
		}
		*into = text == "true"
	}
}
