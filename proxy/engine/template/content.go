package template

import (
	"fmt"
	"slices"
	"strings"

	"kvca/proxy/engine/template/jinja"
)

// textMember is the member that holds the text of a part of each type.
var textMember = map[string]string{
	"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal", "thinking": "thinking",
}

// billingHeader begins a line that changes with each request of one client, and which
// engines take out of system messages.
const billingHeader = "x-anthropic-billing-header"

// content is a message's content as the template sees it: a list of parts, or text.
func (t *Template) content(m *jinja.Dict, role string) (jinja.Value, error) {
	parts, err := partsOf(m)
	if err != nil {
		return nil, err
	}
	list, texts := jinja.NewList(), []string{}
	for i, v := range parts {
		part, err := readPart(v)
		if err != nil {
			return nil, fmt.Errorf("content part %d: %w", i, err)
		}
		if part == nil || role == "system" && !part.withoutBilling() {
			continue
		}
		list.Items = append(list.Items, part.dict())
		if part.text != "" {
			texts = append(texts, part.text)
		}
	}
	if !t.compiled.IteratesContent() {
		return strings.Join(texts, "\n"), nil
	}
	if role == "tool" {
		return toolContent(list), nil
	}
	return list, nil
}

// partsOf are the parts of a message's content, of which plain text is one.
func partsOf(m *jinja.Dict) ([]jinja.Value, error) {
	switch content, _ := m.Get("content"); content := content.(type) {
	case nil:
		return nil, nil
	case string:
		return []jinja.Value{content}, nil
	case *jinja.List:
		return content.Items, nil
	}
	return nil, fmt.Errorf("content: want a string or an array")
}

// toolContent is the content of a tool's message for a template that takes lists:
// text, unless something else is among the parts.
func toolContent(list *jinja.List) jinja.Value {
	var texts []string
	for _, v := range list.Items {
		part := v.(*jinja.Dict)
		if kind, _ := part.Get("type"); kind != jinja.Value("text") {
			return list
		}
		text, _ := member[string](part, "text")
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// part is a piece of content that has text.
type part struct {
	text      string
	none      bool   // the text is null
	reference string // the tool that it refers to, in place of text
	plain     bool   // it may carry a billing header
	of        *jinja.Dict
}

// partMembers are the members of parts that the engine knows. Others of a text part,
// such as cache_control, reach the template.
var partMembers = []string{
	"audio_embeds", "audio_url", "closed", "data", "file", "image_embeds", "image_pil", "image_url", "input_audio", "name",
	"prompt_cache_breakpoint", "refusal", "text", "thinking", "type", "uuid", "video_embeds", "video_url",
}

// readPart reads a part; nil: one that is left out.
func readPart(v jinja.Value) (*part, error) {
	if s, ok := v.(string); ok {
		return &part{text: s, plain: true, of: &jinja.Dict{}}, nil
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil, fmt.Errorf("want a string or an object")
	}
	kind, ok := member[string](d, "type")
	if uuid, _ := d.Get("uuid"); !ok || uuid != nil {
		return nil, fmt.Errorf("%w: a part without a type, or with a uuid", ErrUnsupported)
	}
	if kind == "tool_reference" {
		name, _ := member[string](d, "name")
		return &part{text: name, reference: name}, nil
	}
	name, ok := textMember[kind]
	if !ok {
		return nil, fmt.Errorf("%w: a part of type %q, want text", ErrUnsupported, kind)
	}
	text, ok := member[string](d, name)
	if v, _ := d.Get(name); v != nil && !ok {
		return nil, fmt.Errorf("%s: want a string", name)
	}
	if !ok && (kind == "text" || kind == "refusal") {
		return nil, nil
	}
	return &part{text: text, none: !ok, plain: kind == "text", of: d}, nil
}

func (p *part) dict() *jinja.Dict {
	d := &jinja.Dict{}
	if p.reference != "" {
		d.Set("type", "tool_reference")
		d.Set("name", p.reference)
		return d
	}
	d.Set("type", "text")
	if p.none {
		d.Set("text", nil)
	} else {
		d.Set("text", p.text)
	}
	for i := range p.of.Len() {
		if name, v := p.of.At(i); !slices.Contains(partMembers, name) {
			d.Set(name, v)
		}
	}
	return d
}

// withoutBilling takes the header's line off; false: nothing is left.
func (p *part) withoutBilling() bool {
	if !p.plain || !strings.HasPrefix(p.text, billingHeader) {
		return true
	}
	_, p.text, _ = strings.Cut(p.text, "\n")
	return p.text != ""
}
