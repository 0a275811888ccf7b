package prompt

import (
	"bytes"
	"errors"

	"kvca/state/cbr"
)

var errNoPrompt = errors.New("the request has no prompt to tokenize")

// spliced are the members that a tokenizer is told, besides the prompt. What it
// does not know it ignores: reasoning_effort and tool_choice are for SGLang's, the
// media arguments for vLLM's.
var spliced = map[string]bool{
	"model": true, "messages": true, "tools": true, "tool_choice": true, "reasoning_effort": true,
	"add_generation_prompt": true, "continue_final_message": true, "add_special_tokens": true,
	"chat_template": true, "mm_processor_kwargs": true, "media_io_kwargs": true,
}

// splicer puts a body together from pieces of another. Values are copied as the
// client spelled them, since templates print tools and arguments in that order.
type splicer struct {
	out    bytes.Buffer
	places map[string]int // into pieces
	pieces []piece
}

type piece struct {
	name  string
	value []byte
}

// set keeps a member at the place of its first value and with its last one, as
// Python's dictionaries do.
func (s *splicer) set(name string, value []byte) {
	if at, ok := s.places[name]; ok {
		s.pieces[at].value = value
		return
	}
	if s.places == nil {
		s.places = make(map[string]int, 8)
	}
	s.places[name] = len(s.pieces)
	s.pieces = append(s.pieces, piece{name, value})
}

func (s *splicer) get(name string) []byte {
	if at, ok := s.places[name]; ok {
		return s.pieces[at].value
	}
	return nil
}

// object writes the members that are not null, out of names that need no escape.
func (s *splicer) object() []byte {
	n := 2
	for _, p := range s.pieces {
		n += len(p.name) + len(p.value) + 4
	}
	s.out.Grow(n)
	s.out.WriteByte('{')
	for _, p := range s.pieces {
		if isNull(p.value) {
			continue
		}
		if s.out.Len() > 1 {
			s.out.WriteByte(',')
		}
		s.out.WriteByte('"')
		s.out.WriteString(p.name)
		s.out.WriteString(`":`)
		s.out.Write(p.value)
	}
	s.out.WriteByte('}')
	return s.out.Bytes()
}

// tokenizeBody is the body that /tokenize of vLLM and of SGLang takes.
func tokenizeBody(endpoint cbr.Endpoint, body []byte) ([]byte, error) {
	if endpoint == cbr.Completions {
		return tokenizePrompt(body)
	}
	var s splicer
	var kwargs, effort, documents []byte
	err := eachMember(body, func(name string, value []byte) error {
		switch {
		case name == "chat_template_kwargs":
			kwargs = value
		case name == "documents":
			documents = value
		case spliced[name]:
			s.set(name, value)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if isNull(s.get("messages")) {
		return nil, errNoPrompt
	}
	effort = s.get("reasoning_effort")
	if kwargs, err = templateArguments(kwargs, effort, documents); err != nil {
		return nil, err
	}
	if kwargs != nil {
		s.set("chat_template_kwargs", kwargs)
	}
	if isNull(s.get("add_special_tokens")) { // SGLang's default is true here
		s.set("add_special_tokens", []byte("false"))
	}
	return s.object(), nil
}

// templateArguments merges into the client's template arguments what a chat
// endpoint adds to them and /tokenize does not: the request's own members, which
// outrank them, and what follows from an effort for thinking.
func templateArguments(kwargs, effort, documents []byte) ([]byte, error) {
	effortSet := !isNull(effort) && string(effort) != `"auto"`
	if !effortSet && isNull(documents) {
		return kwargs, nil
	}
	var s splicer
	if !isNull(kwargs) {
		err := eachMember(kwargs, func(name string, value []byte) error {
			quoted, err := quote(name)
			s.set(quoted, value)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if !isNull(documents) {
		s.set("documents", documents)
	}
	if effortSet {
		s.set("reasoning_effort", effort)
		if isNull(s.get("enable_thinking")) {
			s.set("enable_thinking", truth(string(effort) != `"none"`))
		}
	}
	return s.object(), nil
}

func truth(yes bool) []byte {
	if yes {
		return []byte("true")
	}
	return []byte("false")
}

// tokenizePrompt is the body for a completion: the first of its prompts.
func tokenizePrompt(body []byte) ([]byte, error) {
	model, prompt, special, err := promptOf(body)
	if err != nil {
		return nil, err
	}
	var s splicer
	s.set("model", model)
	s.set("prompt", prompt)
	s.set("add_special_tokens", special)
	return s.object(), nil
}

// promptOf is what a completion's tokens depend on, as it is spelled.
func promptOf(body []byte) (model, prompt, special []byte, err error) {
	err = eachMember(body, func(name string, value []byte) error {
		switch name {
		case "model":
			model = value
		case "prompt":
			prompt = value
		case "add_special_tokens":
			special = value
		}
		return nil
	})
	if err == nil && kindOf(prompt) == '[' {
		prompt = first(prompt)
	}
	if err == nil && kindOf(prompt) != '"' {
		err = errNoPrompt
	}
	return model, prompt, special, err
}
