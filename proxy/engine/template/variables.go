package template

import (
	"fmt"
	"slices"

	"kvca/proxy/engine/template/jinja"
)

// taken are arguments of the engine's own call, which a client can't give.
var taken = []string{
	"chat_template", "tokenize", "messages", "conversation", "tools", "padding", "truncation",
	"max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs",
}

// variables are those that the template sees besides the messages and tools.
func variables(request *jinja.Dict) (map[string]jinja.Value, error) {
	vars := map[string]jinja.Value{"documents": nil}
	kwargs, ok := member[*jinja.Dict](request, "chat_template_kwargs")
	if v, _ := request.Get("chat_template_kwargs"); v != nil && !ok {
		return nil, fmt.Errorf("chat_template_kwargs: want an object")
	}
	if ok {
		for i := range kwargs.Len() {
			name, v := kwargs.At(i)
			if slices.Contains(taken, name) {
				return nil, fmt.Errorf("%w: chat_template_kwargs has %s", ErrUnsupported, name)
			}
			vars[name] = v
		}
	}
	explicit := map[string]jinja.Value{"add_generation_prompt": true, "continue_final_message": false}
	for _, name := range []string{"add_generation_prompt", "continue_final_message", "documents", "reasoning_effort"} {
		if v, given := request.Get(name); given {
			explicit[name] = v
		}
	}
	if explicit["add_generation_prompt"] == jinja.Value(true) && explicit["continue_final_message"] == jinja.Value(true) {
		return nil, fmt.Errorf("add_generation_prompt and continue_final_message: want one of them")
	}
	if effort := explicit["reasoning_effort"]; effort != nil {
		if _, said := vars["enable_thinking"]; !said {
			vars["enable_thinking"] = effort != jinja.Value("none")
		}
	}
	for name, v := range explicit {
		if v != nil && v != jinja.Value("auto") {
			vars[name] = v
		}
	}
	return vars, nil
}

// tools are those of the request as vLLM's models write them: their own members, in
// their own order.
func tools(request *jinja.Dict) (jinja.Value, error) {
	v, _ := request.Get("tools")
	if v == nil {
		return nil, nil
	}
	list, ok := v.(*jinja.List)
	if !ok || len(list.Items) == 0 {
		return nil, fmt.Errorf("tools: want an array that isn't empty")
	}
	out := jinja.NewList()
	for i, v := range list.Items {
		tool, ok := v.(*jinja.Dict)
		if !ok {
			return nil, fmt.Errorf("tool %d: want an object", i)
		}
		written, err := writeTool(tool)
		if err != nil {
			return nil, fmt.Errorf("tool %d: %w", i, err)
		}
		out.Items = append(out.Items, written)
	}
	return out, nil
}

func writeTool(tool *jinja.Dict) (*jinja.Dict, error) {
	if kind, ok := tool.Get("type"); ok && kind != jinja.Value("function") {
		return nil, fmt.Errorf("type %v: want function", kind)
	}
	function, ok := member[*jinja.Dict](tool, "function")
	if !ok {
		return nil, fmt.Errorf("function: want an object")
	}
	if _, ok := member[string](function, "name"); !ok {
		return nil, fmt.Errorf("function without a name")
	}
	written := &jinja.Dict{}
	for _, name := range []string{"name", "description", "parameters"} {
		v, _ := function.Get(name)
		written.Set(name, v)
	}
	deferred, _ := tool.Get("defer_loading")
	if strict, _ := function.Get("strict"); strict != nil {
		written.Set("strict", strict)
	}
	inner, _ := function.Get("defer_loading")
	if inner == nil {
		inner = deferred
	}
	if inner != nil {
		written.Set("defer_loading", inner)
	}
	out := &jinja.Dict{}
	out.Set("type", "function")
	out.Set("function", written)
	if deferred != nil {
		out.Set("defer_loading", deferred)
	}
	return out, nil
}
