package trace

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"kvca/proxy/record"
)

// Tracer implements record.Tracer.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
	queue    *queue
	exporter *exporter
	address  func(backend string) string
}

// scope is the name of what makes the spans.
const scope = "kvca/proxy"

// New begins to trace. It does not wait for the collector: one that is away costs
// spans, which are counted.
func New(cfg Config) (*Tracer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	client, err := newClient(&cfg)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	metrics := newMetrics(cfg.Registerer)
	e := newExporter(otlptrace.NewUnstarted(client), cfg.Logger, metrics)
	q := newQueue(e, metrics)
	options := []sdk.TracerProviderOption{
		sdk.WithSpanProcessor(q), sdk.WithResource(describe(&cfg)), sdk.WithRawSpanLimits(limits()),
	}
	if cfg.Ratio >= 0 {
		options = append(options, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(cfg.Ratio))))
	}
	provider := sdk.NewTracerProvider(options...)
	address := cfg.Address
	if address == nil {
		address = func(string) string { return "" }
	}
	return &Tracer{
		provider: provider, tracer: provider.Tracer(scope, otel.WithInstrumentationVersion(cfg.Version)),
		queue: q, exporter: e, address: address,
	}, nil
}

// describe is what all spans have in common. Variables win over our defaults, and
// what was configured over them. What can't be read of the variables is left out.
func describe(cfg *Config) *resource.Resource {
	ours := []attribute.KeyValue{attribute.String("service.name", cmp.Or(cfg.Service, "kvca")), attribute.String("service.version", cfg.Version)}
	if cfg.Node != "" {
		ours = append(ours, attribute.String("service.instance.id", cfg.Node))
	}
	options := []resource.Option{resource.WithAttributes(ours...), resource.WithTelemetrySDK(), resource.WithFromEnv()}
	if cfg.Service != "" {
		options = append(options, resource.WithAttributes(ours[0]))
	}
	r, err := resource.New(context.Background(), options...)
	if err != nil {
		cfg.Logger.Warn("traces: OTEL_RESOURCE_ATTRIBUTES can't be read in whole", "error", err)
	}
	return r
}

// maxValue bounds an attribute that others chose.
const maxValue = 256

func limits() sdk.SpanLimits {
	l := sdk.NewSpanLimits() // reads the variables
	if l.AttributeValueLengthLimit < 0 {
		l.AttributeValueLengthLimit = maxValue
	}
	return l
}

// Start implements record.Tracer.
func (t *Tracer) Start(r *http.Request, began time.Time) record.Span {
	ctx := propagator.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, "request", otel.WithSpanKind(otel.SpanKindServer), otel.WithTimestamp(began))
	return &Span{t: t, ctx: ctx, span: span, began: began}
}

var propagator propagation.TraceContext

// Close sends what is left, until ctx ends, and waits for what runs.
func (t *Tracer) Close(ctx context.Context) error {
	t.queue.close()
	// Exports that are on their way end with ctx, so that the SDK's goroutine does,
	// too; only then is it over.
	stop := context.AfterFunc(ctx, t.exporter.cancel)
	defer stop()
	if err := t.provider.Shutdown(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("close traces: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("close traces: the collector did not take what was left in time: %w", err)
	}
	return nil
}
