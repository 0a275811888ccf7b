// Package engine simulates an LLM inference server: what its prefix cache holds, how long its steps take, who waits for whom.
//
// # The engine
//
// Engine is a state machine in virtual time, without goroutine, clock or I/O. The caller submits requests and says what time it
// is; the engine takes every step that has ended by then and reports what came of it. The same state machine serves the
// simulator, which runs hundreds of engines much faster than time passes, and the HTTP shell below.
//
// A step is what a real engine does between two looks at its queue: each running sequence decodes one token, and what is left of
// the token budget goes to prompts, in chunks. Profile gives its cost. The model follows vLLM where routing can tell the
// difference:
//
//   - Only full blocks are cached. A hit is a contiguous prefix of them, and the last token of a prompt is computed always, so a
//     prompt of exactly n blocks hits at most n-1.
//   - Blocks of running requests are pinned. Released ones queue for eviction last block first, so a chain loses its tail first.
//     Blocks without reusable content are used up before any content is evicted.
//   - A block's content can be hit as soon as the step that computes it begins. An answer's blocks are cached as they fill up,
//     under the names that the request gave for them (Request.OutputBlocks).
//   - The queue is first come, first served. A prompt starts when all its blocks fit; one that does not fit blocks those behind
//     it. When decoding runs out of blocks, the request admitted last loses its own and starts over at the head of the queue.
//
// It departs from vLLM in these ways:
//
//   - A prompt takes all its blocks when it starts, not chunk by chunk.
//   - A head of the queue that did not fit is looked at again when some request has left, not in every step.
//   - If the same content is computed twice at once, only the first copy has a name, unless KeepCopies says otherwise.
//   - There is no sliding window, no swapping and no speculative decoding, and a sequence costs what its context costs, whatever
//     the kernel's tiles.
//
// While everything that runs only decodes, steps differ in nothing but the length of the contexts. Such a run of steps is taken
// as one, whose end has a closed form in whole nanoseconds, and cut short when a request arrives or leaves. A test holds that this
// changes no event, counter or cached block against taking steps one by one. What then costs time is the table of blocks: a
// simulation of many engines should use a BlockTokens as coarse as its trace, not the 16 of a real engine.
//
// # What the cache holds
//
// Watch has the engine tell what changes in its cache: runs of blocks stored and blocks removed, in order, all of a step together
// when the step ends. A hit changes nothing. What Clear drops is told with the next step, however late that comes; Restart tells
// nothing, as a new process would. Whoever keeps count of the changes knows the cache but for the step that is running. In virtual
// time an observer gets the names of blocks, and through Request.Ref whatever else it knows of the request. Without one nothing is
// collected.
//
// # The server
//
// Server puts an Engine behind the HTTP API of vLLM's server. One goroutine takes the steps as they fall due, with time
// multiplied by ServerConfig.Speedup; handlers enter requests, wait for tokens, and withdraw a request at once when its client
// leaves. The text of the prompt goes through a chat template and a tokenizer of four bytes a token; both are simple, and both keep
// what matters to a cache: appending messages leaves earlier tokens alone, and an answer that comes back in the next prompt has
// the tokens with which it was generated. The answer depends on the prompt and the seed only. It is decided before the first
// step, so the cache knows which blocks it will fill.
//
// With ServerConfig.Events it publishes the changes as a real engine does, through package publish: one batch a step, in the form
// of any release of vLLM or of SGLang, with the ids of the simulated tokenizer, the cache salt of a run that begins a prompt, and
// each model but the first as an adapter. Block names are the engine's own 64-bit chain, which means nothing to others. Batches go
// out while the engine is at rest; the publisher's queues are bounded and a subscriber that does not keep up misses some, so
// nobody can hold the engine up. The server owns the publisher: OpenEvents or Serve opens its sockets, Close ends them.
//
// What a request's tokens are is answered by the render endpoints, /tokenize and return_token_ids, and what of them was cached by
// the usage. ServerConfig.Lacks takes each away.
//
// Paths under /sim/ are for tests: order failures (fail), disturb events or restart in place (events), make the health check fail
// (health), drop the cache (clear), change the models (model), look inside (state).
//
// Each file is one concept. Of the engine: profile, pool (blocks), seq (a request), schedule (what goes into a step), run
// (steps, accounting), event, change, engine. Of the server: driver (time), tokens, render, answer and job (text), call, stream
// and errors (HTTP), a file or two per API, preview (prompts that are not run), announce and eventsocket (events), faults,
// disturb, metrics.
package engine
