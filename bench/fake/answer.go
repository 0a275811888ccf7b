package fake

import (
	"fmt"
	"strconv"
	"strings"
)

// answers are the bytes that a backend sends, made once.
type answers struct {
	// whole is an unstreamed answer up to its usage.
	whole []byte
	// chunk is one event of a stream, last the final one up to its usage.
	chunk, last []byte
	models      []byte
}

const (
	answerWords = 120
	sentence    = "The sea lay calm that morning, and no wind moved over it. "
)

// AnswerText is what every unstreamed answer says, about 700 bytes.
var AnswerText = strings.Repeat(sentence, answerWords/10)

func newAnswers(id, model string) *answers {
	head := fmt.Sprintf(`"id":"chatcmpl-%s","created":1764400000,"model":%q`, id, model)
	return &answers{
		whole: fmt.Appendf(nil, `{%s,"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%q},`+
			`"logprobs":null,"finish_reason":"stop"}],"usage":`, head, AnswerText),
		chunk: fmt.Appendf(nil, "data: {%s,\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},"+
			"\"logprobs\":null,\"finish_reason\":null}]}\n\n", head, " morning"),
		last: fmt.Appendf(nil, "data: {%s,\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},"+
			"\"finish_reason\":\"stop\"}],\"usage\":", head),
		models: fmt.Appendf(nil, `{"object":"list","data":[{"id":%q,"object":"model","created":1764400000,"owned_by":"fake","root":%q,`+
			`"max_model_len":262144}]}`, model, model),
	}
}

// appendUsage writes the usage object of a prompt.
func appendUsage(b []byte, promptTokens, cachedTokens int) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(promptTokens), 10)
	b = append(b, `,"completion_tokens":160,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(promptTokens+160), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(cachedTokens), 10)
	return append(b, `}}`...)
}
