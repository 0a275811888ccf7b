package engine

import "encoding/json"

// Prompt is a chat's prompt as a Server's engine has it, for those who must know what is in a cache without asking: the tokens
// into which a body renders, and the names of their blocks.
type Prompt struct {
	// Ends are where the prompt's messages end, in the order of the messages.
	Ends []End

	root uint64
	ids  tokens
}

// End names the first Tokens tokens of a prompt.
type End struct {
	Name   uint64
	Tokens int
}

// ChatPrompt renders the body of a chat completion. The body has to name its model, since each has a cache of its own.
func ChatPrompt(body []byte) (*Prompt, error) {
	var q chatRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, decodeError(err)
	}
	conv, err := q.conversation()
	if err != nil {
		return nil, err
	}
	salt := ""
	if q.CacheSalt != nil {
		salt = *q.CacheSalt
	}
	p := &Prompt{root: root(q.Model, salt), ids: conv.render(true)}
	for i := range conv.messages {
		part := conversation{conv.preamble, conv.messages[:i+1]}.render(false)
		p.Ends = append(p.Ends, End{part.digest(p.root, nil, 1), len(part)})
	}
	return p, nil
}

// Tokens is the length of the prompt.
func (p *Prompt) Tokens() int { return len(p.ids) }

// Blocks names the complete blocks of so many tokens each.
func (p *Prompt) Blocks(unit int) []uint64 { return p.ids.chain(p.root, unit) }

// BlocksWith names the complete blocks of the prompt and an answer's text together, those of Blocks first.
func (p *Prompt) BlocksWith(answer string, unit int) []uint64 {
	whole := p.ids[:len(p.ids):len(p.ids)].appendText(answer)
	return whole.chain(p.root, unit)
}
