// Package prompt finds the tokens of a request, within a budget: what the precise
// index is asked by.
//
// # Ways
//
// There are five ways, tried in this order; each is a small file.
//
//	render    vLLM's renderer takes the request itself, byte for byte: exact by
//	          construction, media included
//	tokenize  vLLM's and SGLang's /tokenize takes a body spliced from the request's
//	          own spelling, with the arguments that a chat endpoint adds for its
//	          template
//	llamacpp  /apply-template, then /tokenize
//	tgi       /chat_tokenize, or /tokenize
//	local     Config.Local, from the model's files
//
// The local way costs no round trip, so it comes first as soon as a self-test has
// found it equal to what the engine says (Config.Preference may say otherwise).
// What is known of a way is known for a model, and is one of: untested; works;
// absent (no such path, or an answer that means it: tried again by one request
// every few minutes); dropped (it was wrong; until a self-test finds it right). A
// way that was dropped takes what it had found out of the cache with it. A prompt
// that came as token ids needs no way at all.
//
// # A request's path
//
// The cache is asked first. Then the request joins the flight for its key, or
// begins one; equal requests share it. It waits for as long as its budget, which
// grows with the prefill that is at stake. A flight that nobody waits for any more
// goes on in the background, and what it finds serves the next turn. A request that
// gets no tokens of its own gets those of the newest turn before that are in the
// cache, a true beginning of its prompt, and else the reason why not.
//
// That they are a beginning is the caller's word for it (Request.Earlier). A
// template may end a prompt with something that the next turn's does not repeat
// (an empty thought, say): some tokens in the last block, which a lookup then
// finds in nobody's cache.
//
// One engine is asked, by rendezvous of the key; others, up to three in all, only
// if it can't be reached, breaks off or answers with 5xx.
//
// # Who owns what
//
// A Service owns its flights, one goroutine each; Close cancels and waits for them.
// A flight has its own copy of the body (/tokenize's body is made from it, for as
// long as that call takes), so the caller's is free once Tokens returns. Entries of
// the cache are never changed and answers share their slices. Locks:
// Service.mu, then the model's; neither is held during a call.
//
// # Bounds
//
// Tokens remembered: CacheBytes. Calls: MaxPerEngine to an engine, none queued; 256
// prompts that wait for a core to be tokenized locally; MaxBackground in the
// background; MaxBodyBytes of bodies in all. A flight ends after CallTimeout, though
// a local tokenizer that has begun can't be stopped. Answers: twice as many
// tokens as the CBR has bytes and 4,096 more (a million more where there are media);
// 16 bytes read for each of those and 1 MiB more, and where there are media 8 times the
// body, 64 MiB in any case; errors to 256 bytes. Models that something is known of: 1,024, the least
// recently used forgotten first.
package prompt
