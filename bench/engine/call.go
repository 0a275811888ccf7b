package engine

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is one request on its way through a handler.
type call struct {
	s         *Server
	w         http.ResponseWriter
	r         *http.Request
	fault     string // what is to go wrong once the answer has begun
	anthropic bool
}

// ServeHTTP answers as vLLM's server would.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

func (s *Server) routes() *http.ServeMux {
	mux, lacks := http.NewServeMux(), s.cfg.Lacks
	for path, h := range map[string]func(*call) error{
		"/v1/chat/completions":      (*call).chat,
		"/v1/completions":           (*call).completions,
		"/v1/responses":             (*call).createResponse,
		"/v1/messages":              (*call).messages,
		"/v1/messages/count_tokens": (*call).countTokens,
		"/v1/embeddings":            (*call).embeddings,
		"/v1/rerank":                (*call).rerank,
		"/rerank":                   (*call).rerank,
		"/v1/score":                 (*call).score,
		"/score":                    (*call).score,
	} {
		mux.HandleFunc("POST "+path, s.inference(&s.faults, h))
	}
	for path, h := range map[string]func(*call) error{
		"/v1/chat/completions/render": unless(lacks.Render, errScaleOut, (*call).previewChat),
		"/v1/completions/render":      unless(lacks.Render, errScaleOut, (*call).previewCompletions),
		"/tokenize":                   unless(lacks.Tokenize, errNoEndpoint, (*call).tokenize),
		"/detokenize":                 unless(lacks.Tokenize, errNoEndpoint, (*call).detokenize),
	} {
		mux.HandleFunc("POST "+path, s.inference(&s.textFaults, h))
	}
	s.addPlainRoutes(mux)
	s.addEventRoutes(mux)
	s.addHooks(mux)
	return mux
}

// inference wraps an endpoint that does a model's work: these fail on demand, by the faults ordered for their kind, and need a
// running engine.
func (s *Server) inference(f *faults, h func(*call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := &call{s: s, w: w, r: r, anthropic: strings.HasPrefix(r.URL.Path, "/v1/messages")}
		if !s.driver.running() {
			c.refuse(&apiError{Status: http.StatusServiceUnavailable, Kind: "ServiceUnavailable", Message: "engine is not running"})
			return
		}
		if c.failFirst(f) {
			return
		}
		c.end(h(c))
	}
}

// end turns a handler's error into an answer, where one can still be given.
func (c *call) end(err error) {
	var api *apiError
	switch {
	case err == nil, errors.Is(err, errEnded):
	case errors.As(err, &api):
		c.s.endings.failed.Add(1)
		c.refuse(api)
	case errors.Is(err, errClientGone):
		c.s.endings.aborted.Add(1)
	default:
		// The engine has died: the connection breaks, with or without a part of the answer.
		panic(http.ErrAbortHandler)
	}
}

func (c *call) refuse(e *apiError) { c.writeJSON(e.Status, e.body(c.anthropic)) }

func (c *call) writeJSON(status int, body []byte) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the client may have left
}

func (c *call) answer(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.writeJSON(http.StatusOK, body)
	return nil
}

// decode reads the body into v. It reads to the end, without which a server does not notice that the client leaves.
func (c *call) decode(v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.s.cfg.MaxBodyBytes))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return &apiError{Status: http.StatusRequestEntityTooLarge, Kind: "BadRequestError", Message: "request body too large"}
	case err != nil:
		return errClientGone
	}
	if err := json.Unmarshal(body, v); err != nil {
		return decodeError(err)
	}
	return nil
}

// model resolves the name that a request gives; none means the first.
func (c *call) model(name string) (string, error) {
	known := c.s.models.names()
	if name == "" && len(known) > 0 {
		return known[0], nil
	}
	for _, k := range known {
		if k == name {
			return name, nil
		}
	}
	return "", notFound("model", "The model `%s` does not exist. Valid aliases: %s.", name, strings.Join(known, ", "))
}

// checkLength refuses what the context cannot hold, in vLLM's words.
func (c *call) checkLength(prompt, maxTokens int) error {
	limit := c.s.cfg.MaxModelLen
	switch {
	case maxTokens > limit:
		return badRequest("max_tokens", "max_tokens=%d cannot be greater than max_model_len=%d. Please request fewer output tokens. "+
			"(parameter=max_tokens, value=%d)", maxTokens, limit, maxTokens)
	case prompt >= limit:
		return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains %d input "+
			"tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. "+
			"(parameter=input_tokens, value=%d)", limit, prompt, prompt)
	case prompt+maxTokens > limit:
		return badRequest("input_tokens", "This model's maximum context length is %d tokens. However, you requested %d output tokens "+
			"and your prompt contains at least %d input tokens, for a total of at least %d tokens. Please reduce the length of the "+
			"input prompt or the number of requested output tokens. (parameter=input_tokens, value=%d)",
			limit, maxTokens, prompt, prompt+maxTokens, prompt)
	}
	return nil
}

// id invents an identifier that no other answer of this server has.
func (c *call) id(prefix string) string {
	n := mix(c.s.ids.Add(1) ^ c.s.cfg.Seed ^ uint64(c.s.born.UnixNano()))
	return prefix + strconv.FormatUint(n, 16)
}

func (c *call) created() int64 { return time.Now().Unix() }

// complete waits for whole answers.
func (c *call) complete(jobs []*job) error {
	if err := c.s.driver.follow(c.r.Context(), jobs, func() error { return nil }); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.bad {
			return badRequest("input_tokens", "the request does not fit in the cache")
		}
		c.s.endings.finished(j.finish)
	}
	return c.breakUnstreamed()
}
