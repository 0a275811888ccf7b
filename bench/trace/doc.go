// Package trace says what clients ask of a fleet, in virtual time: recorded traces and generated workloads in one form.
//
// # The form
//
// A Trace is sessions, a session is requests, and a request waits for the answer of another (After) and then for its client to
// think (Think). So a slow fleet is asked more slowly, as in life. A session begins at its Start, or, in a closed loop
// (Trace.Lanes), when another has ended. Where a trace has stages (Trace.Stages), each waits for the end of the one before.
//
// There is no text. A prompt is a list of names, one for each UnitTokens tokens, and each name stands for the whole prompt up to
// there: two prompts begin alike exactly as far as their names are equal. That is all a prefix cache can tell of a prompt, and
// also what a router may learn from it. A last unit that is not complete has no name, as no engine caches it.
//
// # Recorded traces
//
// Open reads two formats and tells them apart by the first line.
//
// Mooncake (FAST'25): one request a line, whose hash_ids name the prompt's blocks of 512 tokens and are chained already. Each is
// split into four units. Timestamps of the published files are quantised to 3 s, about ten requests at once, and replayed raw
// they measure bursts that never were: the requests of one timestamp are spread uniformly (by the seed) until the next timestamp,
// 3 s at most. Nothing says which requests belong together, so each is a session of its own, and a follow-up is one whose second
// block has come before: the first is a system prompt that all share.
//
// Agent sessions (kv-cache-tester, run-length form): one request a line, whose ids name blocks of 64 tokens by content, local to a
// session. They are chained here, from the session's name and the model's, since a cache serves one model. Three things to know:
//
//   - Think is recorded before a request, from the end of the one before in its chain. Where it is missing the gap of the
//     timestamps stands in.
//   - A sub-agent (session/sN) is a chain of its own in its parent's session. Its clock starts at 0 when it does; what says when that
//     was is its place in the file, behind the request that spawned it. It waits for that request's answer. The parent's next
//     request does not wait for it; its recorded think covers that time.
//   - What sessions have in common, some 14,000 tokens of tools and instructions, can't be seen in ids that are local. Reuse across
//     sessions is therefore understated.
//
// Requests longer than Options.MaxTokens are left out, and what waited for one waits for its predecessor, with the thinks added.
//
// # Generated workloads
//
// Ladder is many prompts on few long prefixes, Climb the same at rates that go up, Tenants is conversations under many system prompts, Burst is Tenants and a sudden hot
// prefix. Each depends on its options and seed only, and each session draws from a generator of its own: the same seed at another
// rate or for a longer time has the same sessions, closer together or more of them. Their prompts say where messages end (Marks),
// which is what gateways that look at messages go by.
package trace
