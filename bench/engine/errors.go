package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// apiError is a refusal in the shape that vLLM gives it.
type apiError struct {
	Status  int
	Kind    string
	Param   *string
	Message string
}

func (e *apiError) Error() string { return e.Message }

// body is the error as JSON: vLLM's, or Anthropic's for its own endpoints.
func (e *apiError) body(anthropic bool) []byte {
	var v any
	if anthropic {
		v = map[string]any{"type": "error", "error": map[string]any{"type": anthropicKind(e.Status), "message": e.Message}}
	} else {
		v = map[string]any{"error": struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Param   *string `json:"param"`
			Code    int     `json:"code"`
		}{e.Message, e.Kind, e.Param, e.Status}}
	}
	text, _ := json.Marshal(v) // of strings and a number: cannot fail
	return text
}

func anthropicKind(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "invalid_request_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	}
	return "api_error"
}

func badRequest(param, format string, args ...any) *apiError {
	e := &apiError{Status: http.StatusBadRequest, Kind: "BadRequestError", Message: fmt.Sprintf(format, args...)}
	if param != "" {
		e.Param = &param
	}
	return e
}

func notFound(param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusNotFound, Kind: "NotFoundError", Param: &param, Message: fmt.Sprintf(format, args...)}
}

// invalid is what the server's request models say before the engine sees anything.
func invalid(kind, field, msg, input string) *apiError {
	loc := "body." + field
	return &apiError{
		Status: http.StatusBadRequest, Kind: "Bad Request", Param: &loc,
		Message: fmt.Sprintf("1 validation error:\n  {'type': '%s', 'loc': '%s', 'msg': '%s', 'input': %s}", kind, loc, msg, input),
	}
}

func missing(field string) *apiError {
	return invalid("missing", field, "Field required", "<dict>")
}

// decodeError translates what encoding/json says.
func decodeError(err error) *apiError {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field := strings.TrimPrefix(kind.Field, "sampling.")
		want := kind.Type.String()
		return invalid(strings.TrimLeft(want, "*[]")+"_parsing", field, "Input should be a valid "+want, "<"+kind.Value+">")
	}
	offset := int64(0)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	}
	return invalid("json_invalid", strconv.FormatInt(offset, 10), "JSON decode error", "<dict of 0 items>")
}
