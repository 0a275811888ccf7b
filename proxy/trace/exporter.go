package trace

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// exporter counts what the collector takes and what it does not. Only the SDK's
// batches call it, one call at a time.
type exporter struct {
	sdk.SpanExporter
	log     *slog.Logger
	metrics *metrics
	waiting atomic.Int64
	life    context.Context
	cancel  func() // ends what is on its way
	failing bool
}

func newExporter(to sdk.SpanExporter, log *slog.Logger, m *metrics) *exporter {
	life, cancel := context.WithCancel(context.Background())
	return &exporter{SpanExporter: to, log: log, metrics: m, life: life, cancel: cancel}
}

// ExportSpans implements sdk.SpanExporter. The log is told when exports begin to
// fail and when they work again, not of each; the SDK is told nothing, since all
// that it would do is to print it.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(e.life, cancel)()
	defer cancel()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.waiting.Add(-int64(len(spans)))
	if err != nil {
		lost := float64(len(spans))
		var some *rejectedError
		if errors.As(err, &some) {
			lost = min(lost, float64(some.spans))
			e.metrics.sent.Add(float64(len(spans)) - lost)
		}
		e.metrics.failed.Add(lost)
		if !e.failing {
			e.failing = true
			e.log.Error("traces can't be sent: spans are lost", "error", err)
		}
		return nil
	}
	e.metrics.sent.Add(float64(len(spans)))
	if e.failing {
		e.failing = false
		e.log.Info("traces are sent again")
	}
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(ctx context.Context) error {
	e.cancel()
	return e.SpanExporter.Shutdown(ctx)
}
