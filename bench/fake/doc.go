// Package fake is a backend that costs as little as possible, so that what a
// benchmark measures is the gateway in front of it.
//
// It answers /v1/chat/completions at once or after a fixed delay, whole (about
// 1 kB) or as a stream of a fixed number of chunks, and the few paths by which
// gateways look after an engine. Its answers are made once; only the usage
// differs. It pretends to have a prefix cache, just well enough that a gateway
// which compares its prediction with usage.prompt_tokens_details isn't misled:
// a body seen before is cached, and so are a conversation's earlier turns and a
// shared start of the prompt.
//
// A switch (Lie) lets a backend answer garbage of several kinds to chats and
// embeddings, while it says that it is healthy.
//
// A Fleet is several such backends in one process. What each was asked stands
// at /fake/stats. Requests are told apart by a marker in the text of their last
// message, [[conv=17 turn=3]], since some gateways drop headers and fields that
// they don't know.
package fake
