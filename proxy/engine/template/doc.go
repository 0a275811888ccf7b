// Package template renders a chat request to the text that an engine would make of
// it: the model's own chat template, given what vLLM gives it.
//
// # What the template sees
//
//   - messages: of each one its role, its content, and of the rest only what vLLM
//     keeps: tool calls (arguments parsed, however they came), reasoning (also under its
//     older name), the id of a tool's call, a name, a task.
//   - content: where the template loops over the content of messages, a list of parts;
//     else the text of the parts, joined by line breaks. Parts without text are media,
//     whose tokens can't be told from the request.
//   - developer messages, as system messages where the template doesn't know of them.
//   - tools, with the members that vLLM's models have, in their order.
//   - chat_template_kwargs, and over them the request's own add_generation_prompt,
//     continue_final_message, documents and reasoning_effort, from which
//     enable_thinking follows where the client didn't say.
//   - the model's special tokens, and the functions of package jinja.
//
// Members keep the order in which the client sent them, and numbers print as Python
// prints them.
//
// # What is refused
//
// A request whose prompt can't be told gives ErrUnsupported. One that the engine
// refuses too gives another error: a template that raises an exception, a tool call
// without a function. An engine that takes what is refused here loses nothing but the
// precise lookup.
//
// A template that asks for the date is given this machine's, at the time of rendering.
//
// # Bounds
//
// Those of package jinja: nesting of the request, steps, output. A Template has no
// state; any number of goroutines may render it.
package template
