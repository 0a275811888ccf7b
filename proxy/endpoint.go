package proxy

import (
	"net/http"
	"strings"

	"kvca/state/cbr"
)

// style is how an API shapes its errors and ends its streams.
type style uint8

const (
	openAIStyle    style = iota // error objects; streams end in [DONE]
	anthropicStyle              // typed error objects; streams of named events
	responsesStyle              // OpenAI's error objects; streams of named events
	ollamaStyle                 // errors and the lines of streams are plain objects
	tgiStyle                    // errors are plain objects; streams of events
)

// endpoint is one path of the client API. Its path is a label of metrics, so a
// path with an id in it has a pattern's name.
type endpoint struct {
	path    string
	methods []string
	cbr     cbr.Endpoint
	style   style
	// computes is whether the prompt is prefill work; tokenizing is none.
	computes bool
	// needsModel is whether a body without a model is refused; else the only
	// model there is answers.
	needsModel bool
	// ids is whether the path ends in the id of a response.
	ids bool
	// native is whether the path is an engine's own, and usage stands under the
	// engine's own names.
	native bool
	// socket is whether the path is for WebSockets.
	socket bool
	// anywhere is whether any backend can answer, of whatever model.
	anywhere bool
	// form is whether bodies may be forms.
	form bool
	// foreign is whether the operator named the path: nothing is known of its bodies.
	foreign bool
	// local answers without a backend, nil for what goes to one.
	local func(*exchange) error
}

var post = []string{http.MethodPost}

// endpoints are the paths that are always served.
var endpoints = map[string]*endpoint{}

func init() {
	for _, e := range []*endpoint{
		{path: "/v1/chat/completions", cbr: cbr.Chat, computes: true, needsModel: true},
		{path: "/v1/completions", cbr: cbr.Completions, computes: true, needsModel: true},
		{path: "/v1/responses", cbr: cbr.Responses, style: responsesStyle, computes: true, needsModel: true},
		{path: "/v1/messages", cbr: cbr.Messages, style: anthropicStyle, computes: true, needsModel: true},
		{path: "/v1/messages/count_tokens", style: anthropicStyle, needsModel: true},
		{path: "/v1/embeddings", computes: true, needsModel: true},
		{path: "/v1/rerank", computes: true, needsModel: true},
		{path: "/v1/score", computes: true, needsModel: true},
		{path: "/tokenize"},
		{path: "/detokenize"},

		{path: "/v1/audio/transcriptions", computes: true, form: true},
		{path: "/v1/audio/translations", computes: true, form: true},
		{path: "/v1/audio/speech", computes: true},
		{path: "/v1/images/generations", computes: true},
		{path: "/v1/images/edits", computes: true, form: true},
		{path: "/v1/images/variations", computes: true, form: true},

		{path: "/v1/classify", computes: true},
		{path: "/v1/tokenize"},
		{path: "/v1/detokenize"},
		{path: "/v2/rerank", computes: true},
		{path: "/rerank", computes: true},
		{path: "/score", computes: true},
		{path: "/classify", computes: true},
		{path: "/pooling", computes: true},

		{path: "/api/chat", cbr: cbr.OllamaChat, style: ollamaStyle, native: true, computes: true},
		{path: "/api/generate", cbr: cbr.OllamaGenerate, style: ollamaStyle, native: true, computes: true},
		{path: "/api/embed", style: ollamaStyle, native: true, computes: true},
		{path: "/api/embeddings", style: ollamaStyle, native: true, computes: true},
		{path: "/api/show", style: ollamaStyle, native: true},
		{path: "/generate", cbr: cbr.Generate, style: tgiStyle, native: true, computes: true},
		{path: "/generate_stream", cbr: cbr.Generate, style: tgiStyle, native: true, computes: true},
		{path: "/completion", cbr: cbr.Complete, native: true, computes: true},
		{path: "/infill", cbr: cbr.Complete, native: true, computes: true},
	} {
		e.methods = post
		endpoints[e.path] = e
	}
	for _, e := range []*endpoint{modelList, tagList, engineVersion, realtime} {
		endpoints[e.path] = e
	}
}

var (
	// engineVersion is what clients of Ollama ask first.
	engineVersion = &endpoint{path: "/api/version", methods: []string{http.MethodGet}, style: ollamaStyle, native: true, anywhere: true}
	realtime      = &endpoint{path: "/v1/realtime", methods: []string{http.MethodGet}, socket: true}
)

// storedResponse serves /v1/responses/{id} and what lies below it: only the
// backend that made the response knows it.
var storedResponse = &endpoint{
	path: "/v1/responses/{id}", style: responsesStyle, ids: true,
	methods: []string{http.MethodGet, http.MethodPost, http.MethodDelete},
}

// passThrough makes the endpoint of a path that the operator configured.
func passThrough(path string) *endpoint {
	return &endpoint{path: path, computes: true, foreign: true, methods: []string{http.MethodGet, http.MethodPost}}
}

const responsesPrefix = "/v1/responses/"

// endpointOf finds the endpoint of a path, nil for none.
func (c *current) endpointOf(path string) *endpoint {
	if e := c.endpoints[path]; e != nil {
		return e
	}
	if rest, ok := strings.CutPrefix(path, responsesPrefix); ok && plainPath(rest) {
		return storedResponse
	}
	if strings.HasPrefix(path, modelsPrefix) && len(path) > len(modelsPrefix) {
		return modelList
	}
	return nil
}

// plainPath is whether each segment is a name that nobody reads in another way: what
// stands before the engine might decode or resolve others, and a client would reach
// any path of it.
func plainPath(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if strings.Trim(segment, ".") == "" || strings.IndexFunc(segment, notPlain) >= 0 {
			return false
		}
	}
	return true
}

// notPlain is whether a character is none of those that a URL never encodes.
func notPlain(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~", r)
}

func (e *endpoint) allows(method string) bool {
	for _, m := range e.methods {
		if m == method {
			return true
		}
	}
	return false
}
