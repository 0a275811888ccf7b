// Package backend is the pool of inference servers.
package backend
