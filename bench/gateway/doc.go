// Package gateway starts the gateways that are compared, each in front of the
// same backends: kvca, the bare reverse proxy that is the floor, and peers where
// they are installed. It knows the command line of each, and asks kvca for what
// it says of itself.
package gateway
