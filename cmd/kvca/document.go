package main

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// item is one value of a file with the line it stands on: a text, a list or a
// mapping. Numbers and switches are kept as they were written.
type item struct {
	line   int
	kind   itemKind
	text   string
	list   []item
	fields []field
}

type field struct {
	key   string
	line  int
	value item
}

type itemKind uint8

const (
	nothing itemKind = iota
	scalar
	sequence
	mapping
	unreadable
)

var kindNames = [...]string{"nothing", "a single value", "a list", "a mapping", "unreadable"}

func (k itemKind) String() string { return kindNames[k] }

// document reads a file's text: one mapping at the top level, of plain values.
// Anchors, tags and further documents are faults, since a configuration that
// means something else than it shows is one that nobody can check by reading.
func document(place string, text []byte) ([]field, faults) {
	if depth := flowDepth(text); depth > maxFlowDepth {
		return nil, faults{{origin{place, 0}, "", fmt.Sprintf("brackets nest %d deep: no setting needs more than %d", depth, maxFlowDepth)}}
	}
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, faults{syntaxFault(place, err)}
	}
	r := reader{place: place}
	var top item
	for i, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case i > 0:
			r.fault(doc.Body, "a second document: want one mapping of settings")
		default:
			top = r.item(doc.Body)
		}
	}
	if top.kind != mapping && top.kind != nothing && top.kind != unreadable {
		r.faults = append(r.faults, fault{origin{place, top.line}, "", fmt.Sprintf("the file holds %v: want a mapping such as listen: 127.0.0.1:8080", top.kind)})
	}
	return top.fields, r.faults
}

// The parser's time grows with the square of how deep brackets nest.
const maxFlowDepth = 64

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

func syntaxFault(place string, err error) fault {
	var known yaml.Error
	if !errors.As(err, &known) {
		return fault{origin{place, 0}, "", err.Error()}
	}
	return fault{origin{place, lineOf(known.GetToken())}, "", "no valid YAML: " + known.GetMessage()}
}

func lineOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return t.Position.Line
}

// reader turns parsed nodes into items and notes what it can't take.
type reader struct {
	place  string
	faults faults
}

func (r *reader) fault(n ast.Node, text string) {
	r.faults = append(r.faults, fault{origin{r.place, lineOf(n.GetToken())}, "", text})
}

func (r *reader) item(n ast.Node) item {
	it := item{line: lineOf(n.GetToken())}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		it.kind, it.text = scalar, n.Value
	case *ast.LiteralNode:
		it.kind, it.text = scalar, n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		it.kind, it.text = scalar, n.GetToken().Value
	case *ast.SequenceNode:
		it.kind = sequence
		for _, v := range n.Values {
			it.list = append(it.list, r.item(v))
		}
	case *ast.MappingNode:
		it.kind, it.fields = mapping, r.fields(n.Values)
	case *ast.MappingValueNode:
		it.kind, it.fields = mapping, r.fields([]*ast.MappingValueNode{n})
	default:
		it.kind = unreadable
		r.fault(n, fmt.Sprintf("YAML %s is not supported: write the value itself", n.Type()))
	}
	if it.kind == mapping && len(it.fields) > 0 {
		it.line = it.fields[0].line // the node's own token is the colon
	}
	return it
}

func (r *reader) fields(values []*ast.MappingValueNode) []field {
	list := make([]field, 0, len(values))
	seen := make(map[string]int, len(values))
	for _, v := range values {
		f := field{key: v.Key.GetToken().Value, line: lineOf(v.Key.GetToken()), value: r.item(v.Value)}
		if first := seen[f.key]; first > 0 {
			r.faults = append(r.faults, fault{origin{r.place, f.line}, f.key, fmt.Sprintf("is there on line %d already: keep one", first)})
			continue
		}
		seen[f.key] = f.line
		list = append(list, f)
	}
	return list
}
