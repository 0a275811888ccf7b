package localmodel

import (
	"errors"
	"fmt"

	"kvca/proxy/engine/template"
	"kvca/proxy/engine/template/jinja"
	"kvca/state/cbr"
)

// ErrUnsupported is what a request gives whose tokens can't be told here. Any other
// error means that the engine will refuse the request, too.
var ErrUnsupported = template.ErrUnsupported

// Tokens are those of a request's prompt, of the first one if there are several.
func (m *Model) Tokens(endpoint cbr.Endpoint, body []byte) ([]uint32, error) {
	if endpoint != cbr.Chat && endpoint != cbr.Completions {
		return nil, fmt.Errorf("%w: requests to %s", ErrUnsupported, endpoint)
	}
	v, err := jinja.ReadJSON(body)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	request, ok := v.(*jinja.Dict)
	if !ok {
		return nil, errors.New("request: want a JSON object")
	}
	if endpoint == cbr.Chat {
		return m.chatTokens(request)
	}
	return m.completionTokens(request)
}

func (m *Model) chatTokens(request *jinja.Dict) ([]uint32, error) {
	if m.noChat != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, m.noChat)
	}
	chat := m.chat
	if tools, _ := request.Get("tools"); tools != nil && m.withTool != nil {
		chat = m.withTool
	}
	prompt, err := chat.RenderRequest(request)
	if err != nil {
		return nil, err
	}
	return m.encode(request, prompt, false)
}

// ownPrompt are members of a completion request that change its prompt in ways that
// only the engine knows.
var ownPrompt = []string{"prompt_embeds", "truncate_prompt_tokens", "truncation_side"}

func (m *Model) completionTokens(request *jinja.Dict) ([]uint32, error) {
	for _, name := range ownPrompt {
		if v, _ := request.Get(name); v != nil {
			return nil, fmt.Errorf("%w: the request has %s", ErrUnsupported, name)
		}
	}
	if v, _ := request.Get("kv_transfer_params"); v != nil {
		if transfer, ok := v.(*jinja.Dict); ok {
			if ids, _ := transfer.Get("prompt_token_ids"); ids != nil {
				return nil, fmt.Errorf("%w: the request brings its tokens", ErrUnsupported)
			}
		}
	}
	prompt, _ := request.Get("prompt")
	list, ok := prompt.(*jinja.List)
	if ok && len(list.Items) > 0 {
		if _, number := list.Items[0].(int64); number {
			return m.given(list)
		}
		prompt = list.Items[0]
		if ids, ok := prompt.(*jinja.List); ok {
			return m.given(ids)
		}
	}
	s, ok := prompt.(string)
	if !ok {
		return nil, errors.New("prompt: want a string, token ids, or an array of those")
	}
	return m.encode(request, s, true)
}

// encode tokenizes, with special tokens around as the request or else the endpoint
// has it.
func (m *Model) encode(request *jinja.Dict, s string, addSpecial bool) ([]uint32, error) {
	switch v, _ := request.Get("add_special_tokens"); v := v.(type) {
	case nil:
	case bool:
		addSpecial = v
	default:
		return nil, errors.New("add_special_tokens: want a boolean")
	}
	if addSpecial && m.noText != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, m.noText)
	}
	ids, err := m.tokens.Append(make([]uint32, 0, len(s)/3+8), s, addSpecial)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return ids, nil
}

// given are the token ids of a request that has them.
func (m *Model) given(list *jinja.List) ([]uint32, error) {
	ids := make([]uint32, len(list.Items))
	for i, v := range list.Items {
		id, ok := v.(int64)
		if !ok || id < 0 || id > int64(^uint32(0)) {
			return nil, fmt.Errorf("prompt: item %d: want a token id", i)
		}
		ids[i] = uint32(id)
	}
	return ids, nil
}
