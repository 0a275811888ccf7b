package prompt

// givenIDs returns the tokens of a completions request whose prompt is token ids
// already: nobody has to be asked. Of several prompts the first counts. It is nil
// for every other prompt.
func givenIDs(body []byte) []uint32 {
	var prompt []byte
	err := eachMember(body, func(name string, value []byte) error {
		if name == "prompt" {
			prompt = value // of several, the last counts
		}
		return nil
	})
	if err != nil || kindOf(prompt) != '[' {
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
