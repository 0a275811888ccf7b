package template

import (
	"fmt"
	"strings"

	"kvca/proxy/engine/template/jinja"
)

// toolCalls are those of an assistant's message; nil: none.
func toolCalls(m *jinja.Dict) (*jinja.List, error) {
	v, _ := m.Get("tool_calls")
	if v == nil {
		return nil, nil
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, fmt.Errorf("tool_calls: want an array")
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	out := jinja.NewList()
	for i, v := range list.Items {
		call, err := toolCall(v)
		if err != nil {
			return nil, fmt.Errorf("tool call %d: %w", i, err)
		}
		out.Items = append(out.Items, call)
	}
	return out, nil
}

func toolCall(v jinja.Value) (*jinja.Dict, error) {
	call, ok := v.(*jinja.Dict)
	if !ok {
		return nil, fmt.Errorf("want an object")
	}
	function, ok := member[*jinja.Dict](call, "function")
	if kind, given := call.Get("type"); !ok || given && kind != jinja.Value("function") {
		return nil, fmt.Errorf("want one of type function")
	}
	args, err := arguments(function)
	if err != nil {
		return nil, err
	}
	written := ordered(function, "arguments", "name")
	written.Set("arguments", args)
	out := ordered(call, "id", "function", "type")
	out.Set("function", written)
	return out, nil
}

// ordered is a dict with these members first, as the engine's models write them, and
// then those they don't know.
func ordered(d *jinja.Dict, first ...string) *jinja.Dict {
	out := &jinja.Dict{}
	for _, name := range first {
		if v, given := d.Get(name); given {
			out.Set(name, v)
		}
	}
	for i := range d.Len() {
		out.Set(d.At(i))
	}
	return out
}

// arguments are those of a call as an object, which they are sent as the text of.
// What is no object becomes an empty one: engines can't have a conversation fail
// for ever over an answer of the model.
func arguments(function *jinja.Dict) (*jinja.Dict, error) {
	v, _ := function.Get("arguments")
	if d, ok := v.(*jinja.Dict); ok {
		return d, nil
	}
	text, ok := v.(string)
	if !ok {
		return &jinja.Dict{}, nil
	}
	parsed, err := jinja.ReadJSON([]byte(text))
	if err != nil && looser(text) {
		return nil, fmt.Errorf("%w: arguments that only some parsers read", ErrUnsupported)
	}
	if d, ok := parsed.(*jinja.Dict); ok && err == nil {
		return d, nil
	}
	return &jinja.Dict{}, nil
}

// looser is whether Python might read what isn't JSON: it knows numbers that aren't
// finite, and halves of surrogate pairs; and a text nested too deep for us may be fine.
func looser(text string) bool {
	return strings.Contains(text, "NaN") || strings.Contains(text, "Infinity") ||
		strings.Contains(text, `\u`) || strings.Count(text, "[")+strings.Count(text, "{") > jinja.MaxDepth
}
