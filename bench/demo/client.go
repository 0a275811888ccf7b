package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// headerBackend says who answered; the gateway sets it when its debug headers
// are on.
const headerBackend = "X-KVCA-Backend"

// Bounds of what a client takes from a gateway.
const (
	maxEventBytes = 1 << 20 // of one line of a stream
	maxErrorBytes = 300     // of an error's body
)

// answer is what a client got for one turn.
type answer struct {
	backend        string
	text           string
	prompt, cached int
	// ttft is the time from sending the request to the first text that came back.
	ttft time.Duration
}

// chat sends one turn and reads its stream to the end.
func chat(ctx context.Context, client *http.Client, url string, body []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes)) // the status is the error
		return nil, fmt.Errorf("ask the gateway: status %d, backend %q: %s", resp.StatusCode, resp.Header.Get(headerBackend), bytes.TrimSpace(text))
	}
	r := reader{began: began, answer: answer{backend: resp.Header.Get(headerBackend)}}
	if err := r.read(resp.Body); err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", r.answer.backend, err)
	}
	return &r.answer, nil
}

// reader puts an answer together from its stream.
type reader struct {
	began   time.Time
	text    strings.Builder
	counted bool // usage has come
	answer  answer
}

// chunk is what counts of one event.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int `json:"prompt_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

var (
	errBroken    = errors.New("the stream ended before [DONE]")
	errUncounted = errors.New("the stream has no usage")
)

// read takes events until [DONE], and then the stream's end, so that the
// connection can be used again.
func (r *reader) read(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4<<10), maxEventBytes)
	done := false
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if done = string(data) == "[DONE]"; done {
			continue
		}
		if err := r.take(data); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !done {
		return errBroken
	}
	if !r.counted {
		return errUncounted
	}
	r.answer.text = r.text.String()
	return nil
}

// take reads one event.
func (r *reader) take(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("decode an event: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return fmt.Errorf("an error in the stream: %.300s", c.Error)
	}
	for _, choice := range c.Choices {
		if choice.Delta.Content != "" && r.text.Len() == 0 {
			r.answer.ttft = time.Since(r.began)
		}
		r.text.WriteString(choice.Delta.Content)
	}
	if c.Usage != nil {
		r.counted = true
		r.answer.prompt, r.answer.cached = c.Usage.Prompt, c.Usage.Details.Cached
	}
	return nil
}
