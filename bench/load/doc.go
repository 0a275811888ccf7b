// Package load drives a gateway from the client's side.
//
//	Closed        N connections, each sends its next request when it has the answer
//	Balanced      clients behind a load balancer, at a fixed rate
//	Steady        a tenant's clients, of whom some may be refused
//	Talk          conversations of several turns, each of which repeats the ones before
//	Burst         requests at the same moment, each on a connection of its own
//	Hold          clients whose answers have begun and go on
//	Leave         clients that go away while they upload, wait or read
//
// It speaks HTTP/1.1 over its own connections, from requests made beforehand:
// the generator shares the machine's cores with what it measures, and a client
// that leaves in the middle of its upload needs the connection anyway.
package load
