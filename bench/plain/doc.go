// Package plain is the floor that gateways are measured against: the standard
// library's reverse proxy, round-robin over its backends, and nothing else.
package plain
