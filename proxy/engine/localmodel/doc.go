// Package localmodel tells the tokens of a request from the files of its model: a
// folder as it comes from a model hub, of which the weights aren't needed.
//
//	tokenizer.json         package tokenizer
//	chat_template.jinja    package template; else chat_template of
//	tokenizer_config.json  which also names the special tokens
//	config.json            says what kind of model it is, if it is there
//
// Chat requests are rendered and tokenized without special tokens around, since the
// template writes those; completions are tokenized with them. The other endpoints
// translate requests in ways of their own and are not supported.
//
// Models whose engine doesn't use the chat template (gpt-oss and some others have
// renderers in code) are refused for chat, as are files from which transformers of
// different versions make different tokens. What can't be known from the files at
// all, such as an engine's own default for a template's variables, a probe against the
// engine has to find.
//
// A Model has no state but the tokenizer's words; any number of goroutines may use it.
package localmodel
