// Package trace makes a span of each request and sends it to an OpenTelemetry
// collector by OTLP over HTTP. A span says who was asked for what, what came of it and
// how it was routed; prompts, answers, keys and headers are not in it.
//
// # Context
//
// W3C Trace Context. A client's traceparent is the request's parent, and its sampled
// flag decides; where it sent none, Config.Ratio of the requests begin a trace. The
// backend is sent a traceparent of ours, sampled or not, so that an engine that traces
// decides alike; the client's tracestate and baggage pass as they came.
//
// # Spans
//
// The request's span is of kind server and named "OPERATION MODEL", or by its
// endpoint. It has the GenAI attributes of the semantic conventions (gen_ai.*,
// error.type), http.* of the stable ones, and:
//
//	kvca.request_id, kvca.tenant     as in the access log
//	kvca.phase, .policy, .reason     how it was decided
//	kvca.chain_blocks, .matched_blocks, .novel_blocks, .block_unit
//	kvca.backend, .owner, .degraded
//	kvca.index, .fallback, .predicted_cached_tokens
//	kvca.attempts, .queued, .gateway backends tried; seconds
//
// Each attempt is a child of kind client, and the engine's parent, with kvca.backend,
// server.address, server.port, http.request.resend_count, http.response.status_code
// and error.type.
//
// # States and bounds
//
// A Tracer owns the SDK's one exporting goroutine and ends it in Close. Spans that have ended wait in a
// queue of OTEL_BSP_MAX_QUEUE_SIZE (2048); one that finds it full is dropped and
// counted, as are those that the collector does not take. A span is owned by the
// goroutine of its request. Values are cut at 256 bytes. Ending a span never waits
// for the collector. Without a collector there is no Tracer, and nothing to pay.
//
// # Variables
//
// Those of OpenTelemetry hold where Config leaves a thing open:
// OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION,
// _CERTIFICATE, _CLIENT_CERTIFICATE, _CLIENT_KEY, _PROTOCOL (http/protobuf only),
// OTEL_TRACES_SAMPLER and _ARG, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
// OTEL_BSP_*, OTEL_SPAN_*_LIMIT. OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none
// switch traces off.
package trace
