package prompt

import (
	"context"
	"fmt"
	"net/http"

	"kvca/state/cbr"
	"kvca/state/kvindex"
)

// Engine is one backend, as this package needs it. body must not be read any more
// once Do has failed or the response's body has been closed.
type Engine interface {
	ID() string
	Do(ctx context.Context, method, target string, header http.Header, body []byte) (*http.Response, error)
}

// Request is a client's request whose tokens are wanted.
type Request struct {
	Endpoint cbr.Endpoint
	// Body is the request as the engine gets it, byte for byte. It is read during
	// the call only.
	Body              []byte
	Model, LoRA, Salt string
	// Key names the whole prompt exactly: two requests of one key have the same
	// tokens. 0 means that it has no name and can't be remembered.
	Key uint64
	// Earlier are keys that name beginnings of this prompt, the newest first: the
	// turns before.
	Earlier []uint64
	// Bytes is the length of the CBR.
	Bytes int64
	// Engines are those who may be asked. One is; another only where that one does
	// not answer at all.
	Engines []Engine
}

// Where an Answer's tokens come from. Further dialects of an engine's tokenizer
// count as FromTokenize.
const (
	FromRender   = "render"
	FromTokenize = "tokenize"
	FromLocal    = "local"
	FromCache    = "cache"
	FromEarlier  = "earlier"
	// FromBody is a prompt that came as token ids.
	FromBody = "body"
)

// Sources are all of them, in a fixed order.
var Sources = [...]string{FromRender, FromTokenize, FromLocal, FromCache, FromEarlier, FromBody}

// Answer is what is known of a request's tokens.
type Answer struct {
	// Prompt shares its slices with the cache: they are never written to.
	Prompt kvindex.Prompt
	// Exact is whether these are all the tokens. Otherwise they are those of an
	// earlier turn, a true beginning of the prompt.
	Exact bool
	// Several is whether the request has more prompts, of which this is the first: what
	// an engine reports is of all of them.
	Several bool
	// Source is one of Sources.
	Source string
	// Miss says why the answer is not exact; nil where it is.
	Miss *Failure
}

// Why there are no tokens.
const (
	NoTokenizer         = "no_tokenizer"         // nobody to ask, or none of those asked can tell
	Deadline            = "deadline"             // not within the budget
	EngineError         = "engine_error"         // refused, broken off, or not to be understood
	UnsupportedEndpoint = "unsupported_endpoint" // requests of this kind can't be asked about
	MediaUnknown        = "media"                // images and the like, of which only a renderer knows how many tokens they take
	Mismatch            = "mismatch"             // what could be asked has been found wrong
	Overloaded          = "overloaded"           // too much in flight already
)

// Reasons are all of them, in a fixed order.
var Reasons = [...]string{NoTokenizer, Deadline, EngineError, UnsupportedEndpoint, MediaUnknown, Mismatch, Overloaded}

// Failure is why a request's tokens are not known.
type Failure struct {
	// Reason is one of Reasons.
	Reason string
	// Err says more, for logs.
	Err error
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

func failed(reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Err: fmt.Errorf(format, args...)}
}
