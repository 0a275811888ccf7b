package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"kvca/bench/fake"
	"kvca/bench/load"
)

const (
	promptBytes = 2 << 10
	largeBytes  = 400 << 10
	// turns is how long a conversation is.
	turns = 6
)

// worker is one client. It belongs to one goroutine.
type worker struct {
	*Clients
	rand *rand.Rand
	// talk is what was said in the conversation that it is in, nil for none; turn is
	// which one comes.
	talk               []byte
	conversation, turn int
}

var errNoNode = errors.New("no node is ready")

// one makes one request.
func (w *worker) one() {
	f := &Failure{Kind: w.draw(w.rand), Began: time.Now()}
	w.sent[f.Kind].Add(1)
	if ready := w.Ready(); len(ready) == 0 {
		f.Err = fmt.Errorf("%w: %w", errNoNode, w.Why())
	} else {
		addr := ready[w.rand.IntN(len(ready))]
		f.Node = w.Names[addr]
		f.Err = w.send(f, addr)
	}
	if f.Err != nil {
		f.Ended = time.Now()
		w.failed[f.Kind].Add(1)
		w.History.failed(f)
	}
}

func (w *worker) send(f *Failure, addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTime)
	defer cancel()
	switch f.Kind {
	case Garbage:
		return w.garble(addr)
	case Stream:
		return stream(w.post(ctx, f, addr, "/v1/chat/completions", w.prompt(promptBytes, true)))
	case FollowUp:
		return w.converse(ctx, f, addr)
	case Embedding:
		body := fmt.Appendf(nil, `{"model":%q,"input":%q}`, w.Model, load.Text(w.rand, promptBytes))
		_, err := whole(w.post(ctx, f, addr, "/v1/embeddings", body))
		return err
	case Large:
		_, err := whole(w.post(ctx, f, addr, "/v1/chat/completions", w.prompt(largeBytes, false)))
		return err
	case SlowUpload:
		return w.upload(ctx, f, addr)
	case Leaver:
		return w.leave(ctx, f, addr)
	default:
		body := w.prompt(promptBytes, false)
		_, err := whole(w.post(ctx, f, addr, "/v1/chat/completions", body))
		if err == nil {
			w.answered(body)
		}
		return err
	}
}

// prompt is one that never came before.
func (w *worker) prompt(n int, stream bool) []byte {
	return load.Chat(w.Model, n, stream, w.Seed<<32+uint64(w.serial.Add(1)))
}

// reply is an answer that was read to its end, or as far as it went.
type reply struct {
	f    *Failure
	body []byte
	err  error
}

// post sends a body and reads the answer. What came of it stands in f. A connection
// that was closed while it was idle is replaced once, as any client does.
func (w *worker) post(ctx context.Context, f *Failure, addr, path string, body []byte) reply {
	for tries := 0; ; tries++ {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+path, bytes.NewReader(body))
		if err != nil {
			return reply{f: f, err: fmt.Errorf("make request: %w", err)}
		}
		req.Header.Set("Content-Type", "application/json")
		r, stale := w.exchange(f, req)
		if !stale || tries > 0 || ctx.Err() != nil {
			return r
		}
		w.again.Add(1)
	}
}

// exchange sends one request. stale means that it went over a connection that had been
// used before, and had no answer.
func (w *worker) exchange(f *Failure, req *http.Request) (r reply, stale bool) {
	var reused, answered atomic.Bool // the transport's goroutines may be late
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:              func(i httptrace.GotConnInfo) { reused.Store(i.Reused) },
		GotFirstResponseByte: func() { answered.Store(true) },
	}))
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return reply{f: f, err: err}, reused.Load() && !answered.Load()
	}
	defer resp.Body.Close()
	f.Status, f.Backend, f.Garbage = resp.StatusCode, resp.Header.Get("X-KVCA-Backend"), resp.Header.Get(fake.GarbageHeader)
	text, err := io.ReadAll(resp.Body)
	f.Begun = len(text) > 0
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, text)
	}
	return reply{f: f, body: text, err: err}, false
}

// whole makes an error of what is not one JSON object.
func whole(r reply) ([]byte, error) {
	if r.err == nil && (!json.Valid(r.body) || r.body[0] != '{') {
		return nil, fmt.Errorf("the answer is no object: %.100q", r.body)
	}
	return r.body, r.err
}

// stream makes an error of a stream without its end.
func stream(r reply) error {
	if r.err == nil && !bytes.Contains(r.body, []byte("data: [DONE]")) {
		return fmt.Errorf("the stream ended before it was complete: ...%.100q", r.body[max(0, len(r.body)-100):])
	}
	return r.err
}

// converse asks the next question of a conversation, which repeats what was said.
func (w *worker) converse(ctx context.Context, f *Failure, addr string) error {
	if w.talk == nil || w.turn == turns {
		w.conversation, w.turn = int(w.serial.Add(1)%1e9), 0
		w.talk = bytes.Replace(w.prompt(promptBytes, false), []byte(`"content":"`), []byte(`"content":"`+w.mark()), 1)
	}
	w.turn++
	answer, err := whole(w.post(ctx, f, addr, "/v1/chat/completions", w.talk))
	if err != nil {
		w.talk = nil
		return err
	}
	var said struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(answer, &said); err != nil || len(said.Choices) == 0 {
		w.talk = nil
		return fmt.Errorf("read answer: %w: %.100s", err, answer)
	}
	w.talk = load.FollowUp(w.talk, said.Choices[0].Message.Content, w.mark()+load.Text(w.rand, 200))
	return nil
}

// mark is by what a backend knows the conversation, and says what it holds of it: an
// engine that seems to have lost everything would have its blocks forgotten.
func (w *worker) mark() string { return fake.Marker(w.conversation, w.turn) + " " }

// upload sends a body piece by piece, with pauses shorter than the gateway allows.
func (w *worker) upload(ctx context.Context, f *Failure, addr string) error {
	const pieces = 10
	body := w.prompt(64<<10, false)
	from, to := io.Pipe()
	go func() {
		for i := range pieces {
			part := body[len(body)*i/pieces : len(body)*(i+1)/pieces]
			if _, err := to.Write(part); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
		_ = to.Close()
	}()
	defer from.Close() // which ends the writer
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", from)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connection", "close") // it can't be sent again
	r, _ := w.exchange(f, req)
	_, err = whole(r)
	return err
}

// leave asks for a stream and goes away before its end. Only an answer that is an
// error is a fault.
func (w *worker) leave(ctx context.Context, f *Failure, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.rand.IntN(400))*time.Millisecond)
	defer cancel()
	r := w.post(ctx, f, addr, "/v1/chat/completions", w.prompt(promptBytes<<w.rand.IntN(6), true))
	if r.err != nil && (ctx.Err() != nil || strings.Contains(r.err.Error(), "context deadline")) {
		return nil
	}
	return stream(r)
}
