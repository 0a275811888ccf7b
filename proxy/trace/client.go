package trace

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// client sends spans by OTLP over HTTP; it implements otlptrace.Client.
// OpenTelemetry's own brings gRPC and its gateway along for the sake of two
// generated types: seven megabytes of the program.
type client struct {
	url     string
	header  http.Header
	gzip    bool
	timeout time.Duration // of one export, all tries included
	http    *http.Client
}

// Bounds on one export.
const (
	firstPause = 500 * time.Millisecond // doubles with each try
	maxAnswer  = 64 << 10
)

// Start implements otlptrace.Client.
func (c *client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It tries again what may succeed later,
// within the timeout.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	body, err := c.encode(spans)
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for pause := firstPause; ; pause *= 2 {
		err := c.post(ctx, body)
		var later *laterError
		if !errors.As(err, &later) {
			return err
		}
		wait := cmp.Or(later.after, pause/2+rand.N(pause/2))
		if end, _ := ctx.Deadline(); time.Until(end) < wait {
			return later.err
		}
		select {
		case <-ctx.Done():
			return later.err
		case <-time.After(wait):
		}
	}
}

// encode makes the body. TracesData has the encoding of the service's request.
func (c *client) encode(spans []*tracepb.ResourceSpans) ([]byte, error) {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil || !c.gzip {
		return body, err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(body) // a Buffer takes all
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// laterError is of a try that may be made again, after a time that the collector
// may have named.
type laterError struct {
	err   error
	after time.Duration
}

func (e *laterError) Error() string { return e.err.Error() }

// rejectedError is of spans that the collector did not take, while it took others.
type rejectedError struct {
	spans   int64
	message string
}

func (e *rejectedError) Error() string {
	return fmt.Sprintf("the collector refused %d spans: %s", e.spans, e.message)
}

func (c *client) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = c.header.Clone()
	resp, err := c.http.Do(r)
	if err != nil {
		return &laterError{err: err}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case resp.StatusCode/100 == 2 && err == nil:
		return rejected(answer)
	case resp.StatusCode/100 == 2:
		return nil // it was taken; what it says of it is lost
	}
	fault := fmt.Errorf("the collector answered %s", resp.Status)
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &laterError{fault, time.Duration(min(max(after, 0), 3600)) * time.Second}
	}
	return fault
}

// rejected reads what the collector says of a request that it took: field 1 is of
// spans that it did not take after all, their count and why.
func rejected(answer []byte) error {
	partial, _ := field(answer, 1, protowire.BytesType)
	if partial == nil {
		return nil
	}
	count, _ := field(partial, 1, protowire.VarintType)
	n, size := protowire.ConsumeVarint(count)
	if size < 0 || n == 0 {
		return nil // a warning
	}
	message, _ := field(partial, 2, protowire.BytesType)
	return &rejectedError{int64(min(n, 1<<31)), string(message[:min(len(message), maxValue)])}
}

// field is the value of the first field of that number and type, false for none.
func field(b []byte, number protowire.Number, kind protowire.Type) ([]byte, bool) {
	for len(b) > 0 {
		got, t, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(got, t, b)
		if size < 0 {
			return nil, false
		}
		if got == number && t == kind {
			if t == protowire.BytesType {
				v, _ := protowire.ConsumeBytes(b)
				return v, true
			}
			return b[:size], true
		}
		b = b[size:]
	}
	return nil, false
}
