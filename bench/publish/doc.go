// Package publish is the event sockets of a simulated engine, as vLLM's publisher
// has them: a PUB that numbers batches from 0, and a ROUTER that replays the last
// ones.
//
// # Data
//
// A batch goes out as [topic, number in 8 bytes big endian, payload]. A replay is
// asked for as [empty, first number] and answered with [empty, topic, number,
// payload] for each batch kept, then [empty, empty, ff × 8, empty]; in the older
// form (Config.OldReplay) the topic is missing from both. A request of another form
// gets no answer.
//
// Faults are armed for the next batches or replays: lost, lost for good, twice,
// swapped, a replay that breaks off. Restart is what a new engine at the same
// address looks like.
//
// # Who owns what
//
// New starts a goroutine for each socket, and one or two for each connection; Close
// ends them all and waits. One mutex guards numbers, ring, faults and the list of
// subscribers; each subscriber's own guards its queue, and is taken second.
//
// # Bounds
//
// The ring (Buffer) and each subscriber's queue (Queue) count batches; a payload
// is held once, however many hold it. Beyond its queue a subscriber misses batches,
// as with libzmq. 64 connections a socket; more are closed at once. One replay is
// sent at a time, others wait.
package publish
