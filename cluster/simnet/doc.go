// Package simnet is a network in memory for tests in virtual time
// (testing/synctest): packets and streams for memberlist, streams for the peer
// link, and the faults of a bad day. Only tests import it.
//
// # Data
//
// A Network has Hosts, each with a name and an address of 10.0.0.0/16; either is
// dialled. A host has ports: memberlist transports and listeners. A stream is two
// pipes, one a direction, each a queue of segments that carry when they arrive.
//
// # Who owns what
//
// The package starts no goroutine. One mutex guards a whole network; whoever waits
// does so on a channel, with the mutex released, so that a bubble's time moves on.
// Packets that are delayed are delivered by timers.
//
// # Bounds
//
// 64 KiB a direction of a stream, after which writes block; 1,024 packets a port,
// beyond which they are dropped as a kernel does; 128 connections that wait to be
// accepted, beyond which dials are refused.
//
// # What is simplified
//
// Faults follow from the seed as far as scheduling is the same. A stream loses
// nothing: in a partition it stalls, and goes on where it healed. A reset is seen at
// once where the hosts reach each other, else when they do again. Pausing a host
// blocks its reads, writes and dials and keeps its packets, both ways, until Resume;
// the process that was paused goes on thinking, since its goroutines can't be
// stopped: it may find the others dead, where a stopped one would only be late.
//
// A bubble whose main function is over has no time: wait there, some seconds, for
// what memberlist still has under way.
package simnet
