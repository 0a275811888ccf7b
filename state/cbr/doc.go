// Package cbr turns the body of a request into its canonical byte representation
// (CBR): a deterministic encoding of everything in the request that can change
// the prompt an engine renders from it. Package chain cuts a CBR into blocks;
// two requests share a prefix of blocks if, and as far as, engines can share the
// cache of their prompts.
//
// # What is in
//
// Whatever is not known to be harmless. The built-in list (rules.go) names the
// top-level members that are out: sampling and output, transport and accounting.
// All others are in, those that nobody has heard of too: a field wrongly left out
// sends a request to a cache that does not hold its prompt, one wrongly taken in
// splits a prefix in two. An operator may change the list for a model by Options.
// Of the list, kv_transfer_params is in after all when it carries
// prompt_token_ids, which replace the prompt; and max_tokens and
// max_completion_tokens are in when truncate_prompt_tokens is negative, because
// the prompt is then cut to leave room for that many. A content part's
// cache_control and prompt_cache_breakpoint are out: clients move these marks to
// the newest message on each turn, and no template prints them.
//
// # What counts as the same
//
// Engines read the top level, a message (or item of a responses input) and a
// content part into fixed models. There, the order of members does not matter, a
// null is as good as none, and a number is its value: 1, 1.0 and 10e-1 are one.
// A string as content is a list of one text part, and a string within such a list
// is one too; the texts of responses may be called input_text or output_text, by
// the role of their item. A string input is a list of one user item, an item
// without a type is a message, and a list of one completion prompt is that prompt.
//
// Below these levels (tool schemas, tool calls, documents, template arguments,
// unknown members) templates print what they were given. There, everything counts
// as written, except white space and the way a string is escaped.
//
// Of members with the same key the last one counts, everywhere; where order
// matters, it stands at the place of the first, as in a Python dictionary.
//
// # Format
//
// Text is UTF-8, its JSON escapes decoded. An escaped surrogate without its other
// half, which Python's parser lets pass, becomes the three bytes that UTF-8 would
// have for it. The bytes F7 to FF therefore never occur in text; framing is made
// of them, and needs no length and no escape:
//
//	CBR     = version endpoint member* [ F7 prompt ]
//	version = "1"
//	endpoint= "c" | "p" | "r" | "m"     chat, completions, responses, messages
//	        | "o" | "g" | "n" | "l"     engines' own: see endpoint.go
//	member  = key value                 key: text, ended by the value's first byte
//	value   = FE text FF                string
//	        | FD value* FF              array
//	        | FC member* FF             object
//	        | FB number FF              number
//	        | FA | F9 | F8              true, false, null
//	prompt  = value*                    chat, messages: messages; responses: items
//	        | value*                    completions and texts for engines: one
//	                                    string or array of token IDs for each prompt
//	content = FD part* FF
//	part    = FE text FF                text part with nothing but its text
//	        | value                     any other
//
// The members of the configuration are sorted by the bytes of their keys, and
// those of messages and parts as well, behind a role, a type and the ID of the
// call that is answered (tool_call_id, tool_use_id). Objects below keep the order
// they came in. The member that holds the endpoint's prompt (messages, prompt or
// input) is the last thing in the CBR, without a name or an end: what a longer
// conversation adds comes after everything that the shorter one has. The F7 sets
// an empty prompt apart from none. A prompt of another kind than the endpoint
// takes is encoded as part of the configuration. The value of "content" in a
// message, and of "system" in a request to messages, is a content unless it is
// neither string nor array.
//
// A number where only its value matters is an optional minus, its significant
// digits, and, unless it is zero, "e" and the power of ten they count: 1e2 for 100,
// 15e-1 for 1.50, and 0 for every zero. An exponent of more than 18 digits is kept
// as it is: "E", an optional minus, its digits, "+", and what to add to it. Other
// numbers are spelled as in the body.
//
// A writer that is also a Marker is told where each of the last messages ends: a
// follow-up repeats the messages of the request before it, so one of these ends
// is that request's own, even where it falls inside a block.
//
// The grammar can be read back without ambiguity, so two requests have the same
// CBR only if they are the same by the rules above.
//
// # How it is read
//
// The body is read once, from front to back, checked against strict JSON and
// encoded in the same step, without building a tree. An object's members go to
// the output in the order they come; only where that is not the canonical order,
// or a key repeats, are the bytes just written put in order. The members of the
// top level stay where they are and are written to the destination in order. The
// model is judged before anything else that JSON does not forbid.
//
// # Bounds
//
// The output is at most twice the body and a few bytes, and scratch in proportion
// to it: besides the output, 12 bytes for each member of the objects around the
// place being read, and some 30 more where they have to be put in order.
// Arrays and objects nest at most MaxDepth deep. Time is linear in the body, but
// for the sorting of members. An Encoder keeps scratch of up to a few megabytes
// and does not allocate for ordinary requests once it is warm.
package cbr
