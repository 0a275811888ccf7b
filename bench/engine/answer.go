package engine

import "encoding/json"

// An answer without a requested length has from minAnswer to maxAnswer tokens.
const (
	minAnswer = 16
	maxAnswer = 64
)

// answerLength is the length the model would choose for a prompt.
func answerLength(seed uint64) int { return minAnswer + int(mix(seed)%(maxAnswer-minAnswer+1)) }

// answerText writes n tokens that depend on the seed only: a space and three letters each, so no escaping in JSON. The first one
// has lead bytes, which completes a prompt's last, partial token.
func answerText(seed uint64, n, lead int) string {
	text := make([]byte, 0, n*tokenBytes)
	for i := range n {
		word := mix(seed + uint64(i))
		size := tokenBytes
		if i == 0 {
			size = lead
		}
		if size == tokenBytes {
			text = append(text, ' ')
			size--
		}
		for range size {
			text = append(text, 'a'+byte(word%26))
			word /= 26
		}
	}
	return string(text)
}

// arguments invents a call's arguments that fit the required members of a JSON schema, roughly.
func arguments(schema json.RawMessage, seed uint64) string {
	var s struct {
		Properties map[string]struct {
			Type any               `json:"type"`
			Enum []json.RawMessage `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return "{}"
	}
	values := make(map[string]any, len(s.Required))
	for i, name := range s.Required {
		p := s.Properties[name]
		if len(p.Enum) > 0 {
			values[name] = p.Enum[0]
			continue
		}
		values[name] = valueOf(p.Type, seed+uint64(i))
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func valueOf(kind any, seed uint64) any {
	switch kind {
	case "integer", "number":
		return mix(seed) % 100
	case "boolean":
		return mix(seed)%2 == 0
	case "array":
		return []any{}
	case "object":
		return struct{}{}
	}
	return answerText(seed, 2, tokenBytes)[1:]
}
