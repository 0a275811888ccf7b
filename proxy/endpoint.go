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
	} {
		e.methods = post
		endpoints[e.path] = e
	}
	endpoints[modelList.path] = modelList
}

// storedResponse serves /v1/responses/{id} and what lies below it: only the
// backend that made the response knows it.
var storedResponse = &endpoint{
	path: "/v1/responses/{id}", style: responsesStyle, ids: true,
	methods: []string{http.MethodGet, http.MethodPost, http.MethodDelete},
}

// passThrough makes the endpoint of a path that the operator configured.
func passThrough(path string) *endpoint {
	return &endpoint{path: path, computes: true, methods: []string{http.MethodGet, http.MethodPost}}
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

// plainPath is whether no segment is empty or a dot one: what stands before the
// engine might resolve those, and a client would reach any path of it.
func plainPath(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

func (e *endpoint) allows(method string) bool {
	for _, m := range e.methods {
		if m == method {
			return true
		}
	}
	return false
}
