package cbr

// Request is what reading a body told about it, besides its CBR.
type Request struct {
	Endpoint Endpoint
	// Model is the model's name after aliases have been resolved, ClientModel the
	// name as the client gave it, "" where an engine's own endpoint does without.
	Model, ClientModel string
	// ModelSpan is where that name stands in the body, quotes included: the bytes
	// to replace for a backend that knows the model by another name. Where a body
	// has several models, it is the last, which is the one that counts.
	ModelSpan [2]int
	// Phase is by roles and items only. It is Bootstrap for Other.
	Phase Phase
	// Stream asks for a streamed answer, IncludeUsage for a count of tokens at the
	// end of it.
	Stream, IncludeUsage bool
	// PreviousResponseID names the stored response that a responses request goes
	// on from: only the backend that made it holds it.
	PreviousResponseID string
	// SkipsCache says that the engine will compute the prompt even where it holds
	// it, since its log probabilities are wanted.
	SkipsCache bool
	// CacheSalt is the request's cache_salt, which parts its cache from others'.
	CacheSalt string
	// PrivateKey says that the engine parts its cache by more than tokens, adapter
	// and salt: SGLang's extra_key and lora_path, which its events leave out.
	PrivateKey bool
	// Bytes is the length of the CBR.
	Bytes int64
}

// describe fills in what the settled top level says, the model aside.
func (e *Encoder) describe(req *Request, f *fixed) {
	var echo, logprobs bool
	for _, m := range e.members[f.base:] {
		value := e.valueOf(m)
		switch string(e.keyOf(m)) {
		case "stream":
			req.Stream = value[0] == tagTrue
		case "stream_options":
			usage := field(value, "include_usage")
			req.IncludeUsage = len(usage) > 0 && usage[0] == tagTrue
		case "prompt_logprobs":
			req.SkipsCache = isSet(value)
		case "cache_salt":
			req.CacheSalt = string(textOf(value))
		case "extra_key", "lora_path":
			req.PrivateKey = req.PrivateKey || isSet(value)
		case "echo":
			echo = isSet(value)
		case "logprobs", "top_logprobs":
			logprobs = logprobs || isSet(value)
		case "truncate_prompt_tokens":
			e.cutsPrompt = isNegative(value)
		case "previous_response_id":
			if e.endpoint == Responses {
				req.PreviousResponseID = string(textOf(value))
			}
		}
	}
	req.SkipsCache = req.SkipsCache || echo && logprobs
	req.Phase = e.phase(req, f)
}

func (e *Encoder) phase(req *Request, f *fixed) Phase {
	switch {
	case endpoints[e.endpoint].text,
		req.PreviousResponseID != "",
		e.followUp && e.endpoint != Other && isPrompt(e.find(f, endpoints[e.endpoint].prompt)):
		return FollowUp
	}
	return Bootstrap
}

// isPrompt reports whether an encoded top-level value is the endpoint's prompt.
func isPrompt(value []byte) bool { return len(value) > 0 && value[0] == tagPrompt }
