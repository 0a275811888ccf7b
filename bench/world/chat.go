package world

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

// model is what the engines serve.
const model = "sim"

// request is a chat completion's body.
type request struct {
	Model         string        `json:"model"`
	MaxTokens     int           `json:"max_tokens"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`
	Messages      []message     `json:"messages"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func body(messages []message, answerTokens int) ([]byte, error) {
	return json.Marshal(request{Model: model, MaxTokens: answerTokens, Stream: true, StreamOptions: streamOptions{true}, Messages: messages})
}

// answer is what a stream told.
type answer struct {
	text string
	// first is the time from sending to the first event.
	first                  time.Duration
	prompt, cached, output int // tokens
}

// ask sends a body and reads the stream to its end.
func ask(ctx context.Context, client *http.Client, addr string, body []byte) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return read(resp.Body, began)
}

// chunk is what is used of an event.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int `json:"prompt_tokens"`
		Output  int `json:"completion_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

const done = "[DONE]"

var errCutOff = errors.New("the answer ends without its usage")

func read(stream io.Reader, began time.Time) (*answer, error) {
	a := &answer{}
	var text strings.Builder
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == done {
			a.text = text.String()
			return a, a.check()
		}
		if a.first == 0 {
			a.first = time.Since(began)
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("read event %.200s: %w", data, err)
		}
		for _, choice := range c.Choices {
			text.WriteString(choice.Delta.Content)
		}
		if c.Usage != nil {
			a.prompt, a.output, a.cached = c.Usage.Prompt, c.Usage.Output, c.Usage.Details.Cached
		}
	}
	return nil, errCutOff
}

func (a *answer) check() error {
	if a.prompt == 0 || a.output == 0 {
		return errCutOff
	}
	return nil
}
