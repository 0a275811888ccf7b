package fake

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strconv"
)

var messagesKey = []byte(`"messages":`)

// appendTokens writes a list of token IDs, one for every four bytes from the
// messages on: bodies whose messages begin alike have IDs that begin alike.
func appendTokens(b, body []byte) []byte {
	if at := bytes.Index(body, messagesKey); at >= 0 {
		body = body[at:]
	}
	b = append(b, '[')
	for i := 0; i+bytesPerToken <= len(body); i += bytesPerToken {
		if i > 0 {
			b = append(b, ',')
		}
		word := binary.LittleEndian.Uint32(body[i:])
		b = strconv.AppendUint(b, uint64(word*0x9e3779b1>>15), 10) // 17 bits, about a vocabulary
	}
	return append(b, ']')
}

// render answers what vLLM does at /v1/chat/completions/render and /tokenize, by
// which some gateways learn a prompt's tokens.
func (b *backend) render(list string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, b.cfg.MaxBodyBytes)); err != nil {
			http.Error(w, "request body: "+err.Error(), http.StatusBadRequest)
			return
		}
		out := append([]byte(`{"request_id":"render","max_model_len":262144,"count":`), strconv.Itoa(body.Len()/bytesPerToken)...)
		out = append(out, `,"`+list+`":`...)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(appendTokens(out, body.Bytes()), '}'))
	}
}
