package prompt

import (
	"bytes"
	"testing"

	"kvca/state/cbr"
)

// longChat is a chat of some 400 KB, full of quotes.
func longChat() []byte {
	var body bytes.Buffer
	body.WriteString(`{"model":"m","messages":[`)
	for i := range 100 {
		if i > 0 {
			body.WriteByte(',')
		}
		body.WriteString(`{"role":"user","content":"`)
		body.Write(bytes.Repeat([]byte(`All \"work\" and no play, {\"image_url\": 1}. `), 80))
		body.WriteString(`"}`)
	}
	body.WriteString(`]}`)
	return body.Bytes()
}

// BenchmarkInspect looks through a request of 400 KB for what only a renderer knows.
func BenchmarkInspect(b *testing.B) {
	body := longChat()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if t := inspect(cbr.Chat, body); t.media {
			b.Fatal("there are no media")
		}
	}
}

func TestTraits(t *testing.T) {
	for body, want := range map[string]traits{
		hi: {},
		`{"messages":[{"content":["text",{"type":"text","text":"image_url"}]}],"suffix":null}`:      {},
		`{"messages":[{"content":[{"type":"text"},{"text":"x","type":"inp\u0075t_audio"}]}]}`:       {media: true},
		`{"messages":[{"content":[{"image_url":"x"}]}],"truncate_prompt_tokens":5}`:                 {media: true, member: "truncate_prompt_tokens"},
		`{"messages":[{"content":[{"image_url":"x"}]}],"messages":[{"content":"x"}]}`:               {},
		`{"messages":[{"content":{"type":"image"},"image":1}],"tools":[{"content":[{"image":1}]}]}`: {},
		`{"messages":[1,null,[]],"kv_transfer_params":{"prompt_token_ids":[1]}}`:                    {member: "kv_transfer_params"},
		`{"kv_transfer_params":{"do_remote_decode":true},"messages":"x"}`:                           {},
		`[`: {}, ``: {}, `{"messages":[{"content":[`: {},
	} {
		if got := inspect(cbr.Chat, []byte(body)); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}
