package proxy

import "bytes"

// usage is what an engine reports of a prompt, in tokens.
type usage struct {
	prompt     int64
	cached     int64 // -1 where the engine does not say
	completion int64
}

func (u *usage) merge(v usage) {
	u.prompt = max(u.prompt, v.prompt)
	u.completion = max(u.completion, v.completion)
	if v.prompt > 0 {
		u.cached = max(u.cached, v.cached)
	}
}

// usage is what the answer said, once it has gone by.
func (w *watch) usage() (usage, bool) {
	u := w.seen
	if len(w.kept) > 0 {
		u = parseUsage(w.kept)
		if w.native {
			u = parseOwn(w.kept)
		}
	}
	return u, u.prompt > 0
}

// Quoted names can't occur inside a JSON string, where quotes are escaped, so the
// usage object is found by its name and its members by theirs, without reading
// the answer around it.
var (
	usageKey = []byte(`"usage"`)
	// The prompt's length, as OpenAI's chat and completions call it, and as its
	// responses and Anthropic's messages do.
	promptKeys = [][]byte{[]byte(`"prompt_tokens"`), []byte(`"input_tokens"`)}
	cachedKeys = [][]byte{[]byte(`"cached_tokens"`), []byte(`"cache_read_input_tokens"`)}
	outputKeys = [][]byte{[]byte(`"completion_tokens"`), []byte(`"output_tokens"`)}
	// Anthropic's prompt length leaves out what was read from or written to the
	// cache; OpenAI's includes it.
	anthropicRead  = []byte(`"cache_read_input_tokens"`)
	anthropicWrite = []byte(`"cache_creation_input_tokens"`)
)

// Engines' own endpoints report beside the answer, under names of their own: SGLang,
// Ollama, llama.cpp.
var (
	ownPromptKeys = [][]byte{[]byte(`"prompt_tokens"`), []byte(`"prompt_eval_count"`), []byte(`"tokens_evaluated"`)}
	ownCachedKeys = [][]byte{[]byte(`"cached_tokens"`), []byte(`"cache_n"`)}
	ownOutputKeys = [][]byte{[]byte(`"completion_tokens"`), []byte(`"eval_count"`), []byte(`"tokens_predicted"`)}
)

func mentionsOwn(b []byte) bool {
	return firstNumber(b, ownPromptKeys, 0) > 0
}

// parseOwn reads what an engine reports at an endpoint of its own.
func parseOwn(b []byte) usage {
	u := usage{prompt: firstNumber(b, ownPromptKeys, 0), cached: firstNumber(b, ownCachedKeys, -1), completion: firstNumber(b, ownOutputKeys, 0)}
	u.cached = min(u.cached, u.prompt)
	return u
}

func mentionsPrompt(b []byte) bool {
	return bytes.Contains(b, promptKeys[0]) || bytes.Contains(b, promptKeys[1])
}

// parseUsage reads the last usage object of b.
func parseUsage(b []byte) usage {
	at := bytes.LastIndex(b, usageKey)
	if at < 0 {
		return usage{cached: -1}
	}
	b = b[at:]
	u := usage{prompt: firstNumber(b, promptKeys, 0), cached: firstNumber(b, cachedKeys, -1), completion: firstNumber(b, outputKeys, 0)}
	if read := number(b, anthropicRead, -1); read >= 0 {
		u.prompt += read + number(b, anthropicWrite, 0)
	}
	u.cached = min(u.cached, u.prompt)
	return u
}

func firstNumber(b []byte, keys [][]byte, absent int64) int64 {
	for _, key := range keys {
		if n := number(b, key, absent); n != absent {
			return n
		}
	}
	return absent
}

// number is the whole number that follows a quoted name, absent where there is
// none. Twelve digits are more tokens than any prompt has.
func number(b, key []byte, absent int64) int64 {
	at := bytes.Index(b, key)
	if at < 0 {
		return absent
	}
	b = bytes.TrimLeft(b[at+len(key):], ": \t\r\n")
	n, digits := int64(0), 0
	for digits < len(b) && digits < 12 && b[digits] >= '0' && b[digits] <= '9' {
		n = n*10 + int64(b[digits]-'0')
		digits++
	}
	if digits == 0 {
		return absent
	}
	return n
}
