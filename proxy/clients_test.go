package proxy

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"kvca/bench/engine"
	"kvca/proxy/backend"
)

// newSimulatedRig is a gateway in front of simulated engines that serve "sim".
func newSimulatedRig(t *testing.T, engines int) *rig {
	t.Helper()
	g := newRig(t, 0)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { stop(); running.Wait() })
	for range engines {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := engine.NewServer(engine.ServerConfig{Profile: engine.Profile8B, Speedup: 100})
		running.Go(func() { engine.Serve(ctx, listener, s) })
		if err := g.pool.Add(backend.Config{URL: "http://" + listener.Addr().String()}); err != nil {
			t.Fatal(err)
		}
	}
	g.waitReady()
	g.await("the model is known", func() bool { members, _ := g.pool.Model("sim"); return len(members) == engines })
	return g
}

func (g *rig) openAI() openai.Client {
	return openai.NewClient(option.WithBaseURL(g.client.URL+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(g.client.Client()), option.WithMaxRetries(0))
}

func (g *rig) anthropic() anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithBaseURL(g.client.URL), anthropicoption.WithAPIKey("none"), anthropicoption.WithHTTPClient(g.client.Client()), anthropicoption.WithMaxRetries(0))
}

func TestOpenAIsClientChats(t *testing.T) {
	g := newSimulatedRig(t, 2)
	client := g.openAI()
	messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(long(1, 4000)), openai.UserMessage("hello")}
	for turn := range 3 {
		stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
			Model: "sim", MaxTokens: openai.Int(30), Messages: messages,
			StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		})
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			if !all.AddChunk(stream.Current()) {
				t.Fatal("a chunk that does not fit the others")
			}
		}
		if stream.Err() != nil || len(all.Choices) != 1 || all.Choices[0].Message.Content == "" {
			t.Fatalf("%v: %+v", stream.Err(), all.ChatCompletion)
		}
		if cached := all.Usage.PromptTokensDetails.CachedTokens; (cached > 900) != (turn > 0) {
			t.Errorf("turn %d: %d of %d tokens were cached", turn, cached, all.Usage.PromptTokens)
		}
		messages = append(messages, openai.AssistantMessage(all.Choices[0].Message.Content), openai.UserMessage("go on"))
	}
}

func TestOpenAIsClientCallsToolsAndSeesErrors(t *testing.T) {
	g := newSimulatedRig(t, 2)
	client := g.openAI()
	answer, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "sim", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
		Tools:      []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look"})},
		ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")},
	})
	if err != nil || len(answer.Choices) != 1 || len(answer.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("%v: %+v", err, answer)
	}
	_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "nope", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	})
	var fault *openai.Error
	if !errors.As(err, &fault) || fault.StatusCode != 404 || fault.Code != "model_not_found" || fault.Param != "model" || fault.Type != "not_found_error" {
		t.Errorf("an unknown model gives %v", err)
	}
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "sim" {
		t.Errorf("models %+v, %v", models, err)
	}
	if _, err := client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{Model: "sim", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("x")}}); err != nil {
		t.Errorf("embeddings: %v", err)
	}
}

func TestOpenAIsClientContinuesAResponse(t *testing.T) {
	g := newSimulatedRig(t, 4)
	client := g.openAI()
	for range 5 {
		first, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
			Model: "sim", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
		})
		if err != nil {
			t.Fatal(err)
		}
		stream := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
			Model: "sim", PreviousResponseID: openai.String(first.ID),
			Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("more")},
		})
		var last responses.Response
		for stream.Next() {
			if done, ok := stream.Current().AsAny().(responses.ResponseCompletedEvent); ok {
				last = done.Response
			}
		}
		if stream.Err() != nil || last.ID == "" {
			t.Fatalf("%v: %+v", stream.Err(), last)
		}
		if got, err := client.Responses.Get(t.Context(), last.ID, responses.ResponseGetParams{}); err != nil || got.ID != last.ID {
			t.Errorf("a streamed response can't be retrieved: %v", err)
		}
	}
}

func TestAnthropicsClientChatsCallsToolsAndSeesErrors(t *testing.T) {
	g := newSimulatedRig(t, 2)
	client := g.anthropic()
	hello := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))}
	stream := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "sim", MaxTokens: 30, Messages: hello})
	var all anthropic.Message
	for stream.Next() {
		if err := all.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if stream.Err() != nil || len(all.Content) != 1 || all.Content[0].Text == "" {
		t.Errorf("%v: %+v", stream.Err(), all)
	}
	answer, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "sim", MaxTokens: 30, Messages: hello,
		Tools:      []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "look"}}},
		ToolChoice: anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}},
	})
	if err != nil || len(answer.Content) != 1 || answer.Content[0].Type != "tool_use" {
		t.Errorf("%v: %+v", err, answer)
	}
	_, err = client.Messages.New(t.Context(), anthropic.MessageNewParams{Model: "nope", MaxTokens: 30, Messages: hello})
	var fault *anthropic.Error
	if !errors.As(err, &fault) || fault.StatusCode != 404 || fault.Type() != "not_found_error" {
		t.Errorf("an unknown model gives %v", err)
	}
	if _, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "sim", Messages: hello}); err != nil {
		t.Errorf("count_tokens: %v", err)
	}
}
