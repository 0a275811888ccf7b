// Package simnet is a network in memory for tests in virtual time: packets and
// streams for memberlist, streams for the peer link, and the faults of a bad day.
package simnet
