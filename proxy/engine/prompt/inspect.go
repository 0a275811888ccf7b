package prompt

import (
	"bytes"

	"kvca/state/cbr"
)

// traits are what a request holds that tokenizers, other than the engine's own
// renderer, can't be told or don't know.
type traits struct {
	media bool
	// member is the first top-level member of that kind.
	member string
}

// beyond are top-level members that change the prompt in ways only the engine
// itself applies, if they are set.
var beyond = map[string]bool{
	"truncate_prompt_tokens": true, "prompt_embeds": true, "input_ids": true, "session_params": true, "suffix": true,
}

// inspect looks through a request. What can't be read has no traits: the engine
// will say what is wrong with it.
func inspect(endpoint cbr.Endpoint, body []byte) traits {
	var t traits
	suspect := mentionsMedia(body)
	_ = eachMember(body, func(name string, value []byte) error {
		switch {
		case name == "messages" && endpoint == cbr.Chat && suspect:
			t.media = hasMedia(value)
		case beyond[name] && !isNull(value),
			name == "kv_transfer_params" && bytes.Contains(value, []byte(`"prompt_token_ids"`)):
			t.member = name
		}
		return nil
	})
	return t
}

// mediaTypes are the content parts that are not text. Quotes inside strings are
// escaped, so a quoted name is a string by itself; but it may be one that a tool's
// schema holds, so what is found here is looked at more closely.
var mediaTypes = [][]byte{
	[]byte(`"image_url"`), []byte(`"input_image"`), []byte(`"image_embeds"`), []byte(`"image_pil"`), []byte(`"image"`),
	[]byte(`"audio_url"`), []byte(`"input_audio"`), []byte(`"audio_embeds"`), []byte(`"audio"`),
	[]byte(`"video_url"`), []byte(`"video"`), []byte(`"prompt_embeds"`), []byte(`"file"`), []byte(`"input_file"`),
}

func mentionsMedia(body []byte) bool {
	for _, name := range mediaTypes {
		if bytes.Contains(body, name) {
			return true
		}
	}
	return false
}

func isMediaType(value []byte) bool {
	for _, name := range mediaTypes {
		if bytes.Equal(value, name) {
			return true
		}
	}
	return false
}

// hasMedia reports whether a message has a part that is not text.
func hasMedia(messages []byte) (media bool) {
	part := func(p []byte) error {
		return eachMember(p, func(name string, value []byte) error {
			// A part without a type is what its one member says (vLLM takes these).
			media = media || name == "type" && isMediaType(value) || isMediaType([]byte(`"`+name+`"`))
			return nil
		})
	}
	_ = eachElement(messages, func(message []byte) error {
		return eachMember(message, func(name string, value []byte) error {
			if name == "content" && kindOf(value) == '[' {
				_ = eachElement(value, func(p []byte) error {
					_ = part(p) // a string, which is text
					return nil
				})
			}
			return nil
		})
	})
	return media
}
