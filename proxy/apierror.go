package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"kvca/state/cbr"
)

// apiError is an answer that the gateway itself makes. Its code is stable:
// programs may branch on it.
type apiError struct {
	status  int
	code    string
	message string
	param   string
	// retryAfter is in seconds, 0 for none.
	retryAfter int
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func badRequest(code, message, param string) *apiError {
	return &apiError{status: http.StatusBadRequest, code: code, message: message, param: param}
}

func unavailable(code, message string) *apiError {
	return &apiError{status: http.StatusServiceUnavailable, code: code, message: message, retryAfter: 1}
}

// The error that a body which can't be read deserves.
func unreadable(err error) *apiError {
	var api *apiError
	if errors.As(err, &api) {
		return api
	}
	var fault *cbr.Error
	if errors.As(err, &fault) {
		return badRequest(fault.Code, fault.Message, fault.Param)
	}
	return badRequest("invalid_request", err.Error(), "")
}

func unknownModel(model string, known []string) *apiError {
	const most = 20
	list := strings.Join(known[:min(len(known), most)], ", ")
	if len(known) > most {
		list += fmt.Sprintf(" and %d more", len(known)-most)
	}
	if list == "" {
		list = "none yet"
	}
	return &apiError{
		status: http.StatusNotFound, code: "model_not_found", param: "model",
		message: fmt.Sprintf("The model %s does not exist. Models served here: %s.", quoteShort(model), list),
	}
}

// quoteShort quotes a client's own text for a message, cut to 200 bytes.
func quoteShort(s string) string {
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return strconv.Quote(s)
}

// kind is the error's type in OpenAI's and Anthropic's words.
func (e *apiError) kind(s style) string {
	switch {
	case e.status == http.StatusNotFound:
		return "not_found_error"
	case e.status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case e.status == http.StatusUnauthorized:
		return "authentication_error"
	case e.status == http.StatusForbidden:
		return "permission_error"
	case e.status == http.StatusRequestEntityTooLarge && s == anthropicStyle:
		return "request_too_large"
	case e.status < 500:
		return "invalid_request_error"
	case s == anthropicStyle && e.status == http.StatusServiceUnavailable:
		return "overloaded_error"
	case s == anthropicStyle:
		return "api_error"
	default:
		return "server_error"
	}
}

type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

type anthropicError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Code    string `json:"code"`
}

// plainError is Ollama's and TGI's, which look at the first one or two members.
type plainError struct {
	Error string `json:"error"`
	Type  string `json:"error_type"`
	Code  string `json:"code"`
}

// body is the error as the endpoint's API shapes errors.
func (e *apiError) body(s style, requestID string) []byte {
	var v any
	if s == anthropicStyle {
		v = struct {
			Type      string         `json:"type"`
			Error     anthropicError `json:"error"`
			RequestID string         `json:"request_id"`
		}{"error", anthropicError{e.kind(s), e.message, e.code}, requestID}
	} else if s == ollamaStyle || s == tgiStyle {
		v = plainError{e.message, e.kind(s), e.code}
	} else {
		v = struct {
			Error openAIError `json:"error"`
		}{e.openAI(s)}
	}
	b, _ := json.Marshal(v) // strings only: can't fail
	return b
}

func (e *apiError) openAI(s style) openAIError {
	o := openAIError{Message: e.message, Type: e.kind(s), Code: e.code}
	if e.param != "" {
		o.Param = &e.param
	}
	return o
}

// event is the error as the last event of a stream that broke.
func (e *apiError) event(s style, requestID string) []byte {
	switch s {
	case anthropicStyle:
		return []byte("event: error\ndata: " + string(e.body(s, requestID)) + "\n\n")
	case responsesStyle:
		b, _ := json.Marshal(map[string]any{
			"type": "response.failed",
			"response": map[string]any{
				"id": nil, "object": "response", "status": "failed",
				"error": map[string]string{"code": e.code, "message": e.message},
			},
		})
		return []byte("event: response.failed\ndata: " + string(b) + "\n\n")
	default:
		return []byte("data: " + string(e.body(s, requestID)) + "\n\n")
	}
}

// write sends the error as a whole answer.
func (e *apiError) write(w http.ResponseWriter, s style, requestID string) {
	b := e.body(s, requestID)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(b)))
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	w.WriteHeader(e.status)
	w.Write(b) // a client that is gone loses nothing
}
