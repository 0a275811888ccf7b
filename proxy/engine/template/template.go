package template

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"kvca/proxy/engine/template/jinja"
)

// ErrUnsupported is what a request gives whose prompt can't be told from it here.
var ErrUnsupported = errors.New("prompt can't be rendered here")

// Template is a model's chat template.
type Template struct {
	compiled *jinja.Template
	special  map[string]string
	// developer is whether the template knows of developer messages.
	developer bool
	// source is looked into for members of the final message to continue.
	source string
	now    func() time.Time
}

// Compile reads a chat template. Special are the model's special tokens by the names
// that templates use: bos_token, eos_token and so on.
func Compile(source string, special map[string]string) (*Template, error) {
	compiled, err := jinja.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return &Template{
		compiled:  compiled,
		special:   maps.Clone(special),
		developer: strings.Contains(source, `"developer"`) || strings.Contains(source, `'developer'`),
		source:    source,
		now:       time.Now,
	}, nil
}

// Render renders the body of a chat request, as the client sent it.
func (t *Template) Render(body []byte) (string, error) {
	v, err := jinja.ReadJSON(body)
	if err != nil {
		return "", fmt.Errorf("chat request: %w", err)
	}
	request, ok := v.(*jinja.Dict)
	if !ok {
		return "", errors.New("chat request: want a JSON object")
	}
	return t.RenderRequest(request)
}

// RenderRequest is Render of a request that has been read, which stays as it is.
func (t *Template) RenderRequest(request *jinja.Dict) (string, error) {
	if err := supported(request); err != nil {
		return "", err
	}
	vars, err := variables(request)
	if err != nil {
		return "", err
	}
	messages, err := t.conversation(request)
	if err != nil {
		return "", err
	}
	if vars["tools"], err = tools(request); err != nil {
		return "", err
	}
	for name, token := range t.special {
		if _, given := vars[name]; !given {
			vars[name] = token
		}
	}
	return t.continued(messages, vars)
}

// unsupported are members that change the prompt in ways that only the engine knows.
var unsupported = []string{
	"chat_template", "truncate_prompt_tokens", "truncation_side", "mm_processor_kwargs", "media_io_kwargs",
}

func supported(request *jinja.Dict) error {
	for _, name := range unsupported {
		if v, _ := request.Get(name); v != nil {
			return fmt.Errorf("%w: the request has %s", ErrUnsupported, name)
		}
	}
	if transfer, ok := member[*jinja.Dict](request, "kv_transfer_params"); ok {
		if ids, _ := transfer.Get("prompt_token_ids"); ids != nil {
			return fmt.Errorf("%w: the request brings its tokens", ErrUnsupported)
		}
	}
	return nil
}

// member is a member of that type.
func member[T any](d *jinja.Dict, name string) (T, bool) {
	v, _ := d.Get(name)
	of, ok := v.(T)
	return of, ok
}
