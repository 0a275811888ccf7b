package trace

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// queue stands before the SDK's batches, which drop what they have no room for
// without saying so: it lets in no more than they hold, and counts the others.
type queue struct {
	sdk.SpanProcessor
	bound   int64
	waiting *atomic.Int64 // let in and not yet handed to the collector or lost
	closed  atomic.Bool
	metrics *metrics
}

func newQueue(e *exporter, m *metrics) *queue {
	bound := sdk.DefaultMaxQueueSize
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		bound = n
	}
	return &queue{
		SpanProcessor: sdk.NewBatchSpanProcessor(e, sdk.WithMaxQueueSize(bound)),
		bound:         int64(bound), waiting: &e.waiting, metrics: m,
	}
}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if q.closed.Load() {
		q.metrics.closed.Inc()
		return
	}
	if q.waiting.Add(1) > q.bound {
		q.waiting.Add(-1)
		q.metrics.full.Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// Shutdown implements sdk.SpanProcessor.
func (q *queue) Shutdown(ctx context.Context) error {
	q.close()
	return q.SpanProcessor.Shutdown(ctx)
}

// close lets nothing more in.
func (q *queue) close() { q.closed.Store(true) }
