// Package backend is the pool of inference servers: which there are, what they
// serve, whether they may be chosen, and the connections to them.
//
// # Who owns what
//
// A Pool owns its Backends. A Backend owns two transports: one for requests,
// bounded by PoolConfig.MaxConns, and one of a single connection for its watcher,
// so that a probe never queues behind requests. The router owns the facts
// (router.Backend) and is told through Slots; only this package writes them.
//
// Each backend has one goroutine, its watcher, which checks health, scrapes
// metrics and reads the model list in turn. It starts in Add and ends before
// Remove or Close returns. There is no other goroutine but net/http's. Watchers
// wake on a common beat, of 0.5 s while idle, since waking the process costs more than a
// probe: a hundred idle backends take under a hundredth of a core.
//
// # What decides a standing
//
// condition and breaker are plain state machines: they take a verdict, a time and
// return what follows. Three inputs meet there:
//
//   - the watcher's probes: two that fail in a row take a backend out, one that
//     succeeds brings it back. A late answer counts only if the backend has begun
//     none since the last probe: a busy engine is slow, not dead.
//   - requests. A refused connect takes the backend out at once, in Do itself,
//     before any retry is decided. Other failures (Report) open a breaker after
//     BreakerFailures in a row. Those that a prompt may cause count only once
//     prompts of two chains have failed, and no breaker opens if more than half of
//     the backends of one of its models would be ejected. A success closes it.
//   - the operator's drain, which outranks both.
//
// In a cluster each node has its own view. What changes in it is told by
// PoolConfig.OnChange; a peer that sees another health only causes a probe (Probe),
// at most one a second. Backends that were learned from peers are marked, and go by
// Forget, not by Remove.
//
// An open breaker waits 1 s, doubling to 4 s; then a probe that succeeds
// half-opens it, and the next request decides. An unhealthy backend is probed
// every second for a minute and every 2 s thereafter, so that it serves within 5 s
// of its return; before it does, its metrics and models are read again, so that a
// restart voids what was learned (Slots.Void) and no request goes to a model that
// is no longer there. What returns starts at a tenth of its weight.
//
// A restart shows in process_start_time_seconds; where an engine does not expose
// it, in token counters that fall, or in connections that were refused. Another
// engine at the same address, whose IP was free again, starts with nothing too: it
// shows in any of these, in base models that are all new or have other weights, and
// after an outage in a start time that lies far before the known one.
//
// # Models and adapters
//
// A backend serves what it lists at /v1/models, read every five seconds, so that a
// LoRA adapter which an engine loads or unloads at run time is followed without a
// request for it: each name has the backends that list it. An engine that answers
// that it has no such model (LacksModel) is believed at once (Lacks): it gets no
// more requests for it until it lists it again, and its list is read within a second.
//
// # Zones
//
// A backend of another zone than the node's (PoolConfig.Zone) is remote to it, which
// the cost policy lets count for a little. Zones say nothing about who owns a
// backend: ownership follows names alone, so that all nodes agree on it without
// asking, and a reservation is a small message where an answer is a long stream.
//
// # What requests touch
//
// Model, All and Of read an immutable view behind an atomic pointer. A change of
// membership or models makes a new one. Report of a success is two atomic loads
// as long as nothing is wrong. Lock order: Pool.mu, then Backend.mu; Slots.Add is
// called with Pool.mu held and must not call back.
//
// Do sends a long body as it lies in the caller's slice: headers in one write, the
// body in another, without a copy (bulkConn); a short one goes out with the headers. A request that meets
// an idle connection which the engine has just closed is sent once more; one that
// breaks later than a connect may take is not, since the engine may have worked on
// it.
//
// # Bounds
//
// Connections: MaxConns and one a backend, 16 KiB of buffers each; requests beyond
// wait as long as their context. Answers to probes: 4 MiB. Response headers:
// 1 MiB. Models: 1024 names of 512 bytes a backend, served ones that are gone
// included. Every probe has HealthTimeout, every connect ConnectTimeout. The first
// byte of an answer has no deadline unless HeaderTimeout is set: a vanished host is
// found by TCP keep-alive in half a minute.
package backend
