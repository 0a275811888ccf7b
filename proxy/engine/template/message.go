package template

import (
	"fmt"
	"slices"
	"strings"

	"kvca/proxy/engine/template/jinja"
)

// conversation is the messages as the template sees them.
func (t *Template) conversation(request *jinja.Dict) (*jinja.List, error) {
	list, ok := member[*jinja.List](request, "messages")
	if !ok {
		return nil, fmt.Errorf("messages: want an array")
	}
	out, developer := jinja.NewList(), false
	for i, v := range list.Items {
		m, ok := v.(*jinja.Dict)
		if !ok {
			return nil, fmt.Errorf("message %d: want an object", i)
		}
		seen, err := t.message(m)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		role, _ := member[string](seen, "role")
		developer = developer || role == "developer"
		out.Items = append(out.Items, seen)
	}
	if developer && !t.developer {
		return oneSystem(out), nil
	}
	return out, nil
}

// message is one message as the template sees it.
func (t *Template) message(m *jinja.Dict) (*jinja.Dict, error) {
	role, ok := member[string](m, "role")
	if !ok {
		return nil, fmt.Errorf("role: want a string")
	}
	content, err := t.content(m, role)
	if err != nil {
		return nil, err
	}
	out := &jinja.Dict{}
	out.Set("role", role)
	out.Set("content", content)
	switch role {
	case "assistant":
		if err := assistant(out, m); err != nil {
			return nil, err
		}
	case "tool":
		if id, given := m.Get("tool_call_id"); given {
			out.Set("tool_call_id", id)
		}
	}
	for _, name := range []string{"name", "task"} {
		if s, ok := member[string](m, name); ok {
			out.Set(name, s)
		}
	}
	if role == "developer" {
		out.Set("tools", developerTools(m))
	}
	return out, nil
}

// developerTools are the tools of a developer's message.
func developerTools(m *jinja.Dict) jinja.Value {
	list, ok := member[*jinja.List](m, "tools")
	if !ok {
		return nil
	}
	out := jinja.NewList()
	for _, v := range list.Items {
		if tool, ok := v.(*jinja.Dict); ok {
			written := ordered(tool, "function", "type")
			if function, ok := member[*jinja.Dict](tool, "function"); ok {
				written.Set("function", ordered(function, "name", "description", "parameters", "strict"))
			}
			v = written
		}
		out.Items = append(out.Items, v)
	}
	return out
}

// assistant sets what only messages of assistants have.
func assistant(out, m *jinja.Dict) error {
	calls, err := toolCalls(m)
	if err != nil {
		return err
	}
	if calls != nil {
		out.Set("tool_calls", calls)
	}
	reasoning, _ := m.Get("reasoning")
	if reasoning == nil {
		reasoning, _ = m.Get("reasoning_content")
	}
	if reasoning != nil {
		out.Set("reasoning", reasoning)
		out.Set("reasoning_content", reasoning)
	}
	return nil
}

// oneSystem makes system messages of developer messages and, unless only the first
// message is one then, one system message of all of them.
func oneSystem(messages *jinja.List) *jinja.List {
	var texts []string
	systems, rest := jinja.NewList(), jinja.NewList()
	late := false
	for i, v := range messages.Items {
		m := v.(*jinja.Dict)
		role, _ := member[string](m, "role")
		if role != "system" && role != "developer" {
			rest.Items = append(rest.Items, m)
			continue
		}
		m.Set("role", "system")
		m.Delete("tools")
		late = late || i > 0 || len(texts) > 0
		systems.Items = append(systems.Items, m)
		if text := plainText(m); text != "" {
			texts = append(texts, text)
		}
	}
	if !late {
		return messages
	}
	merged := &jinja.Dict{}
	merged.Set("role", "system")
	merged.Set("content", strings.Join(texts, "\n\n"))
	return jinja.NewList(slices.Insert(rest.Items, 0, jinja.Value(merged))...)
}

// plainText is the content of a message as one text.
func plainText(m *jinja.Dict) string {
	content, _ := m.Get("content")
	list, ok := content.(*jinja.List)
	if !ok {
		s, _ := content.(string)
		return s
	}
	var texts []string
	for _, v := range list.Items {
		if part, ok := v.(*jinja.Dict); ok {
			if text, ok := member[string](part, "text"); ok {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n")
}
