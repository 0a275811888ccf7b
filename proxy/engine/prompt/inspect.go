package prompt

import (
	"bytes"

	"kvca/state/cbr"
)

// traits are what a request holds that tokenizers, other than the engine's own
// renderer, can't be told or don't know.
type traits struct {
	media bool
	// member is the last top-level member of that kind.
	member string
}

// beyond are top-level members that change the prompt in ways only the engine
// itself applies, if they are set.
var beyond = map[string]bool{
	"truncate_prompt_tokens": true, "prompt_embeds": true, "input_ids": true, "session_params": true, "suffix": true,
}

// mediaTypes are the content parts that are not text. vLLM also takes parts without
// a type, which are what their member says.
var mediaTypes = map[string]bool{
	"image_url": true, "input_image": true, "image_embeds": true, "image_pil": true, "image": true,
	"audio_url": true, "input_audio": true, "audio_embeds": true, "audio": true,
	"video_url": true, "video": true, "prompt_embeds": true, "file": true, "input_file": true,
}

// inspect looks through a request. What can't be read has no traits: the engine
// will say what is wrong with it.
func inspect(endpoint cbr.Endpoint, body []byte) traits {
	var t traits
	w := walker{decoder(body)}
	_ = w.members(func(name string) error {
		switch {
		case name == "messages" && endpoint == cbr.Chat && w.d.PeekKind() == '[':
			t.media = false // of several, the last counts
			return w.elements(func(int) error { return t.message(w) })
		case beyond[name] && !w.null():
			t.member = name
		case beyond[name]:
			return nil
		case name == "kv_transfer_params":
			value, err := w.d.ReadValue()
			if bytes.Contains(value, []byte(`"prompt_token_ids"`)) {
				t.member = name
			}
			return err
		}
		return w.d.SkipValue()
	})
	return t
}

func (t *traits) message(w walker) error {
	if w.d.PeekKind() != '{' {
		return w.d.SkipValue()
	}
	return w.members(func(name string) error {
		if name == "content" && w.d.PeekKind() == '[' {
			return w.elements(func(int) error { return t.part(w) })
		}
		return w.d.SkipValue()
	})
}

func (t *traits) part(w walker) error {
	if w.d.PeekKind() != '{' { // a string, which is text
		return w.d.SkipValue()
	}
	return w.members(func(name string) error {
		t.media = t.media || mediaTypes[name]
		if name != "type" || w.d.PeekKind() != '"' {
			return w.d.SkipValue()
		}
		kind, err := w.d.ReadToken()
		if err == nil {
			t.media = t.media || mediaTypes[kind.String()]
		}
		return err
	})
}
