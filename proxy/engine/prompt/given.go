package prompt

// givenIDs returns the tokens of a completions request whose prompt is token ids
// already: nobody has to be asked. Of several prompts the first counts. It is nil
// for every other prompt, and where the engine will not take them as they are.
func givenIDs(body []byte) []uint32 {
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
		return nil
	}
	if one := first(prompt); kindOf(one) == '[' {
		prompt = one
	}
	ids, err := parseIDs(prompt, len(prompt))
	if err != nil || len(ids) == 0 {
		return nil
	}
	return ids
}
