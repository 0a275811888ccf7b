// Package feed keeps one source of the precise index true to one engine: it
// subscribes to the engine's KV cache events, heals what is lost through the
// engine's replay socket, notices restarts, and forgets what it can't vouch for.
//
// # Right or reset
//
// What a sink holds is what the engine announced and has not taken back, or less;
// never more, but for as long as it takes to notice a loss. A lost batch may have
// removed any block, so whatever can't be healed ends in Sink.Reset: what was
// known is forgotten, and what follows is fresh knowledge. Status.Problem says
// when that is less than the engine holds, and what would help.
//
// # The machine
//
// machine decides; it has no goroutine, no clock and no socket. Inputs: a
// connection up or down, a live batch, a replay's batch, end or failure, own
// losses, time. Outputs go through effects. Its modes:
//
//   - connecting: the event socket is down. What is known stays for DownAfter;
//     then the source is no longer live and holds nothing.
//   - replaying: live batches wait (at most MaxPending) for a replay. On each
//     connection that is one from the last applied batch on, inclusive: the same
//     payload under that number means the same process. Else the source is reset
//     and all there is asked for. A new source asks from 0 and takes what the ring
//     still has. A gap asks for what is missing.
//   - live: batches are applied as they come. Without a replay socket a connection
//     begins here, and anything but the next number after a reconnect is a restart.
//
// The state "degraded" of Status is live, with a replay overdue that could not be
// had. Of a replay only numbers that follow each other count, not its end marker:
// the engine's socket drops pieces for a slow reader, so after 500 batches and more
// the end is asked for again. There is one at a time; three in a row that break
// off are a failure, 3 s without a batch too, and six that bring nothing in order, the
// last three after ever longer pauses; after one that was of no use
// none is begun for 1 s, doubling to 30 s. Replaying that goes on for 10 s is a problem
// that Status tells. What an answer lacks is gone if it was
// published before the question. A batch that can't be read is not asked for again,
// since its bytes would be the same.
//
// A live stream may lag behind a replay: what it brings twice is skipped. Its own
// numbers only grow on one connection; one that falls is a restart behind a broker.
//
// One restart can't be told: without a replay socket, where the first batch heard of
// the new process has exactly the number that the old one would have used next.
// Whoever knows of the restart otherwise calls Void.
//
// # The shell
//
// Run owns three kinds of goroutines and waits for all: zmtp's, which copy frames
// into the inbox and never wait; one that fetches a replay, while there is one; and
// the worker, Run itself, the only one that touches machine, decoder and sink. The
// inbox is bounded by MaxQueue bytes of live batches, beyond which they are dropped
// and the gap is healed by a replay, and as many of a replay, whose reader waits.
// Of several connections (an endpoint that is bound) only the newest speaks, and
// Status.Problem says that others wanted to.
package feed
