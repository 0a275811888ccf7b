package engine

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// The vendors' own clients must be able to read what the server writes.

func TestOpenAIsClientReadsAChatStream(t *testing.T) {
	_, base, hc := served(t, ServerConfig{Speedup: 50})
	client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(hc))
	st := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "sim", MaxTokens: openai.Int(30), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	var acc openai.ChatCompletionAccumulator
	for st.Next() {
		if !acc.AddChunk(st.Current()) {
			t.Fatal("a chunk that does not fit the others")
		}
	}
	if st.Err() != nil || len(acc.Choices) != 1 || len(acc.Choices[0].Message.Content) != 120 || acc.Usage.CompletionTokens != 30 {
		t.Errorf("%v: %+v", st.Err(), acc.ChatCompletion)
	}
}

func TestOpenAIsClientReadsAToolCall(t *testing.T) {
	_, base, hc := served(t, ServerConfig{Speedup: 50})
	client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(hc))
	st := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model: "sim", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look"})},
		ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{
			OfAuto: openai.String("required"),
		},
	})
	var acc openai.ChatCompletionAccumulator
	for st.Next() {
		acc.AddChunk(st.Current())
	}
	if st.Err() != nil || len(acc.Choices) != 1 || len(acc.Choices[0].Message.ToolCalls) != 1 || acc.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%v: %+v", st.Err(), acc.ChatCompletion)
	}
	if f := acc.Choices[0].Message.ToolCalls[0].Function; f.Name != "look" || f.Arguments != "{}" {
		t.Errorf("call of %q with %q", f.Name, f.Arguments)
	}
}

func TestOpenAIsClientReadsAResponseStream(t *testing.T) {
	_, base, hc := served(t, ServerConfig{Speedup: 50})
	client := openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(hc))
	st := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "sim", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
	})
	text, final := "", responses.Response{}
	for st.Next() {
		switch ev := st.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			text += ev.Delta
		case responses.ResponseCompletedEvent:
			final = ev.Response
		}
	}
	if st.Err() != nil || text == "" || final.OutputText() != text || final.Usage.OutputTokens == 0 {
		t.Errorf("%v: streamed %q, final %q", st.Err(), text, final.OutputText())
	}
}

func TestAnthropicsClientReadsAMessageStream(t *testing.T) {
	_, base, hc := served(t, ServerConfig{Speedup: 50})
	client := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("none"), anthropicoption.WithHTTPClient(hc))
	st := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
		Model: "sim", MaxTokens: 30, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
	})
	var acc anthropic.Message
	for st.Next() {
		if err := acc.Accumulate(st.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if st.Err() != nil || len(acc.Content) != 1 || len(acc.Content[0].Text) != 120 || acc.Usage.OutputTokens != 30 {
		t.Errorf("%v: %+v", st.Err(), acc)
	}
}
