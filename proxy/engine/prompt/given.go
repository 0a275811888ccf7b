package prompt

import "bytes"

// givenIDs returns the tokens of a completions request whose prompt is token ids
// already: nobody has to be asked. Of several prompts the first counts. It is nil
// for every other prompt, and where the engine will not take them as they are.
func givenIDs(body []byte) (ids []uint32, several bool) {
	var prompt []byte
	changed := false
	err := eachMember(body, func(name string, value []byte) error {
		if name == "prompt" {
			prompt = value // of several, the last counts
		}
		changed = changed || beyond[name] && !isNull(value)
		return nil
	})
	if err != nil || changed || kindOf(prompt) != '[' {
		return nil, false
	}
	if one := first(prompt); kindOf(one) == '[' {
		rest := bytes.TrimSpace(bytes.TrimSpace(prompt)[1:])
		several = len(bytes.TrimSpace(rest[len(one):])) > 1 // more than the list's end
		prompt = one
	}
	ids, err = parseIDs(prompt, len(prompt))
	if err != nil || len(ids) == 0 {
		return nil, false
	}
	return ids, several
}
