// Package jinja renders Jinja templates as Python's library does, in the setting in
// which engines render chat templates: an immutable sandbox, trim_blocks and
// lstrip_blocks, break and continue, tojson without escapes for HTML, and the
// functions raise_exception and strftime_now.
//
// It is written for exactness: a template that it doesn't render as Python would is
// refused, by an error that says what is not supported, as is whatever Python refuses.
//
// # Parts
//
// A lexer cuts the source into tokens and settles what white space counts; a parser
// makes of them a tree of expressions and statements that evaluate themselves in a
// frame, the scope of names. While parsing, a survey notes what loops go over.
// Values are Go's own, with List and Dict for what has an order.
//
// # Bounds
//
//   - Source: MaxSource bytes, a million tokens, 200 levels of nesting.
//   - JSON that is read: MaxDepth levels.
//   - A rendering: MaxSteps steps, MaxOutput bytes of output and of any string,
//     200 calls within calls.
//
// Evaluation panics with a fault to get out of a tree, which Compile and Render turn
// into their error; they don't recover from anything else.
//
// A Template doesn't change once compiled. Rendering doesn't change its variables.
package jinja
