package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

const (
	maxProbeBytes = 4 << 20 // of any answer to a probe
	keepBuffer    = 1 << 20 // larger buffers are not kept
)

var errTooLong = fmt.Errorf("answer exceeds %d bytes", maxProbeBytes)

// buffers are shared by all watchers: few of them read at the same time.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// get asks the engine for a path on the watcher's own connection and hands the
// answer to read, whose argument is valid only during the call.
func (b *Backend) get(ctx context.Context, path string, read func(body []byte) error) (status int, err error) {
	req := b.outline.WithContext(ctx)
	u := *b.base
	u.Path, u.RawPath = b.base.Path+path, ""
	req.Method, req.URL, req.Header = http.MethodGet, &u, b.probeHeader
	resp, err := b.probes.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	buf := buffers.Get().(*bytes.Buffer)
	defer recycle(buf)
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, maxProbeBytes+1)); err != nil {
		return 0, err
	}
	if buf.Len() > maxProbeBytes {
		return 0, errTooLong
	}
	if resp.StatusCode == http.StatusOK && read != nil {
		return resp.StatusCode, read(buf.Bytes())
	}
	return resp.StatusCode, nil
}

func recycle(buf *bytes.Buffer) {
	if buf.Cap() <= keepBuffer {
		buf.Reset()
		buffers.Put(buf)
	}
}

// judge turns the outcome of a health check into a verdict.
func judge(status int, err error) (verdict, error) {
	switch {
	case err == nil && status/100 == 2:
		return probeOK, nil
	case err == nil && status == http.StatusServiceUnavailable:
		return probeLoading, errors.New("health check answered 503")
	case err == nil:
		return probeBad, fmt.Errorf("health check answered %d", status)
	case refused(err):
		return probeRefused, err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return probeLate, fmt.Errorf("health check: %w", err)
	}
	return probeBad, fmt.Errorf("health check: %w", err)
}

// absent reports whether the engine has no such path.
func absent(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}
