// Package netns gives each node of a cluster a network namespace of its own, and
// joins them by a wire that delays packets, loses some, and can be cut.
//
// The wire is this program: each namespace has a TUN device whose packets it reads
// and writes to the device of the namespace that they are for. That is what
// `tc netem` does elsewhere; the kernel's own module for it is often not built in,
// and can't cut between any two nodes. Clients and backends are reached over a
// second interface of each namespace, which is not disturbed.
//
// A Lab owns the namespaces, and two goroutines a node; Close ends both. Packets
// under way are bounded per node, and dropped beyond, as a switch would. It needs
// root, iproute2 and /dev/net/tun; where they are missing New returns ErrMissing
// with the reason. Addresses are fixed, so there is one Lab on a machine; a second
// one waits for the first one's end.
package netns
