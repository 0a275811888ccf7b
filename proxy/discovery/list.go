package discovery

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"kvca/proxy/backend"
)

// The parser's time grows with the square of how deep brackets nest, and no list
// needs more.
const maxFlowDepth = 16

// parseList reads a list of backends, YAML or JSON: all of it or nothing. An element
// is a mapping with the keys that the configuration has, or a text [ID=]URL. The
// error holds every fault, with its line.
func parseList(place string, text []byte) ([]backend.Config, error) {
	if depth := flowDepth(text); depth > maxFlowDepth {
		return nil, fmt.Errorf("%s: brackets nest %d deep: want a list of backends", place, depth)
	}
	nodes, err := elements(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, err)
	}
	var list []backend.Config
	var faults []error
	lines := make(map[string]int, len(nodes))
	for _, n := range nodes {
		line := n.GetToken().Position.Line
		c, err := readElement(n)
		if err == nil && lines[c.ID] > 0 {
			err = fmt.Errorf("id: %q is there on line %d already: want an id of its own", c.ID, lines[c.ID])
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: line %d: %w", place, lineOf(err, line), plain(err)))
			continue
		}
		lines[c.ID] = line
		list = append(list, c)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return list, nil
}

// elements are the nodes of the list at the top. Anchors, aliases and tags are
// faults: a list that means something else than it shows can't be checked by reading.
func elements(text []byte) ([]ast.Node, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, fmt.Errorf("line %d: no valid YAML: %w", lineOf(err, 1), plain(err))
	}
	var top ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType || doc.Body.Type() == ast.NullType:
		case top != nil:
			return nil, errors.New("a second document: want one list of backends")
		default:
			top = doc.Body
		}
	}
	if top == nil {
		return nil, nil
	}
	list, ok := top.(*ast.SequenceNode)
	if !ok {
		return nil, fmt.Errorf("holds a %s: want a list of backends, such as - url: http://10.0.0.1:8000", strings.ToLower(top.Type().String()))
	}
	var odd indirect
	ast.Walk(&odd, list)
	if odd.what != "" {
		return nil, fmt.Errorf("YAML %s is not supported: write the value itself", odd.what)
	}
	return list.Values, nil
}

// indirect finds what stands for something else.
type indirect struct{ what string }

// Visit notes a node.
func (v *indirect) Visit(n ast.Node) ast.Visitor {
	switch n.Type() {
	case ast.AnchorType, ast.AliasType, ast.TagType, ast.MergeKeyType:
		v.what = strings.ToLower(n.Type().String())
	}
	return v
}

func readElement(n ast.Node) (backend.Config, error) {
	if text, ok := n.(*ast.StringNode); ok {
		return readShort(text.Value)
	}
	var e entry
	if err := yaml.NodeToValue(n, &e, yaml.Strict()); err != nil {
		return backend.Config{}, err
	}
	return e.config()
}

// readShort reads [ID=]URL. A URL may hold a = of its own, but not before its
// scheme's end.
func readShort(text string) (backend.Config, error) {
	c := backend.Config{URL: text}
	if id, address, found := strings.Cut(text, "="); found && !strings.Contains(id, "://") {
		c.ID, c.URL = id, address
	}
	return c.Complete()
}

// lineOf is where a fault of the parser's is; line for others.
func lineOf(err error, line int) int {
	var known yaml.Error
	if errors.As(err, &known) && known.GetToken() != nil && known.GetToken().Position != nil {
		return known.GetToken().Position.Line
	}
	return line
}

// plain is a fault of the parser's without its picture of the source, and in the
// words of the file; others are left as they are.
func plain(err error) error {
	var kind *yaml.TypeError
	var known yaml.Error
	switch {
	case errors.As(err, &kind) && kind.StructFieldName != nil:
		return fmt.Errorf("%s: want a %v", keyOf(*kind.StructFieldName), kind.DstType)
	case errors.As(err, &known):
		return errors.New(known.GetMessage())
	}
	return err
}

// keyOf is the key of one of entry's fields, which the parser calls entry.Field.
func keyOf(field string) string {
	_, name, _ := strings.Cut(field, ".")
	if f, ok := reflect.TypeFor[entry]().FieldByName(name); ok {
		return f.Tag.Get("yaml")
	}
	return field
}

// flowDepth is how many brackets are open at most, those in texts included.
func flowDepth(text []byte) (deepest int) {
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	return deepest
}
