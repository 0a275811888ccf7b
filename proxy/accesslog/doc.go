// Package accesslog writes a line for each request that has ended: who asked for
// what, what came of it, how long it took and how it was routed. Prompts, answers,
// keys, headers and query strings are not in it; they never reach this package.
//
// # Fields
//
// A line is one JSON object, or with the format "text" the same as key=value. What
// is empty or unknown is left out. Times are in seconds.
//
//	time                     when the headers had been read, UTC
//	kept                     why there is a line: sample, error or slow
//	request_id, trace_id     X-Request-Id; the trace, where the request is traced
//	client                   who sent it, as Config.Client says
//	method, endpoint         the endpoint is the path of the table, never the client's own
//	model, alias             the model's own name; the client's, where it is another
//	tenant                   whose key it had
//	status                   the answer's; 499 where the client left first
//	code                     the gateway's own error code
//	duration                 until the last byte
//	first_byte               until the backend's first byte
//	gateway                  until it was sent off, without the wait for a turn
//	queued                   the wait for a turn
//	body_bytes               size of the request's body
//	attempts                 backends that were tried
//	prompt_tokens, cached_tokens, output_tokens
//	                         as the engine reported them
//	streamed                 true where the answer was a stream of events
//	backend, owner           who served it; the node that booked it
//	phase, policy, reason    how it was decided
//	chain_blocks, matched_blocks, novel_blocks, block_unit
//	                         what of the prompt the backend was believed to hold
//	degraded                 true where it was decided without the owner
//	index, fallback          the precise index's part; why it had none
//	predicted_cached_tokens  what the precise index foretold
//
// To count requests from a sample, weigh lines of kept=sample by one over the
// ratio, and the others by one.
//
// # States and bounds
//
// Ended formats the line and appends it to a buffer of at most Config.MaxBytes;
// where it does not fit it is dropped and counted, so a disk that hangs costs lines
// and never a request. One goroutine, owned by the Log, writes the buffer within
// flushAfter, or sooner where it is half full; while it writes, a second buffer of the
// same bound fills. Close writes what is there and waits for the goroutine.
//
// The file is opened anew by Reopen, and by itself within a second where its name
// leads to another file or to none: logrotate needs no signal. Where it can't be
// opened the old one stays in use.
package accesslog
