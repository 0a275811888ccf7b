package fake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// backend is one of a fleet: a handler and its counts.
type backend struct {
	cfg     Config
	index   int
	answers *answers
	cache   *cache
	book    *book
	garbage atomic.Int32 // a Garbage
	counters
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

var streamFlag = []byte(`"stream":true`)

// chat answers one request, or notices that its client has gone.
func (b *backend) chat(w http.ResponseWriter, r *http.Request) {
	b.active.Add(1)
	defer b.active.Add(-1)
	body := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(body)
	body.Reset()
	if _, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, b.cfg.MaxBodyBytes)); err != nil {
		b.broken.Add(1)
		http.Error(w, "request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	b.requests.Add(1)
	m, marked := findMark(body.Bytes())
	usage := b.usage(body.Bytes(), m, marked)
	done := b.answer(w, r, bytes.Contains(body.Bytes(), streamFlag), usage)
	if !done {
		b.cancelled.Add(1)
	}
	if marked {
		b.book.add(Served{Conversation: m.conversation, Turn: m.turn, Backend: b.index, Cancelled: !done, Ended: time.Now()})
	}
}

func (b *backend) usage(body []byte, m mark, marked bool) []byte {
	held := b.cache.admit(body, m, marked)
	return appendUsage(nil, len(body)/bytesPerToken, held/bytesPerToken)
}

func (b *backend) answer(w http.ResponseWriter, r *http.Request, stream bool, usage []byte) (done bool) {
	if stream {
		return b.stream(w, r, usage)
	}
	if !pause(r.Context(), b.cfg.delay()) {
		return false
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(b.answers.whole) + len(usage) + 1)}
	// One write: the answer fits the server's buffer.
	_, err := w.Write(append(append(append(make([]byte, 0, 1536), b.answers.whole...), usage...), '}'))
	return err == nil
}

// stream sends its headers at once, as vLLM does, and the chunks after the delay.
func (b *backend) stream(w http.ResponseWriter, r *http.Request, usage []byte) bool {
	w.Header()["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	flusher := http.NewResponseController(w)
	if b.cfg.Delay > 0 {
		_ = flusher.Flush()
	}
	if !pause(r.Context(), b.cfg.delay()) {
		return false
	}
	for range b.cfg.Chunks - 1 {
		if _, err := w.Write(b.answers.chunk); err != nil {
			return false
		}
		if err := flusher.Flush(); err != nil || !pause(r.Context(), b.cfg.ChunkDelay) {
			return false
		}
	}
	_, err := w.Write(append(append(append(make([]byte, 0, 512), b.answers.last...), usage...), "}\n\ndata: [DONE]\n\n"...))
	return err == nil
}

// delay draws how long an answer takes to begin.
func (c *Config) delay() time.Duration {
	if c.Spread == 0 {
		return c.Delay
	}
	return c.Delay - c.Spread + rand.N(2*c.Spread)
}

// pause waits, and returns false when the client left meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// embed answers with one vector.
func (b *backend) embed(w http.ResponseWriter, r *http.Request) {
	b.active.Add(1)
	defer b.active.Add(-1)
	n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, b.cfg.MaxBodyBytes))
	if err != nil {
		b.broken.Add(1)
		http.Error(w, "request body: "+err.Error(), http.StatusBadRequest)
		return
	}
	b.requests.Add(1)
	if !pause(r.Context(), b.cfg.delay()) {
		b.cancelled.Add(1)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"object":"list","model":%q,"data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}],`+
		`"usage":{"prompt_tokens":%d,"total_tokens":%[2]d}}`, b.cfg.Model, n/bytesPerToken)
}

func (b *backend) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b.answers.models)
}

func (b *backend) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	running := b.active.Load()
	_, _ = fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=%q} %d\n"+
		"# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name=%[1]q} 0\n", b.cfg.Model, running)
}

func (b *backend) info(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"model_id":%q,"model_path":%[1]q,"served_model_name":%[1]q,"is_generation":true,"version":"0"}`, b.cfg.Model)
}

func (b *backend) healthy(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
