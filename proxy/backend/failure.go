package backend

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// Failure is what a request to a backend came to, as far as the backend's
// breaker and a retry are concerned.
type Failure uint8

// The kinds of failure.
const (
	NoFailure        Failure = iota // served, or the client's own fault or doing
	ConnectFailure                  // no connection: refused, unreachable, no answer in time, TLS
	BrokenConnection                // the connection ended before the response's headers
	HeaderTimeout                   // no response headers within PoolConfig.HeaderTimeout
	BadStatus                       // a 5xx answer
	StreamFailure                   // the response broke after its headers
	LocalFailure                    // the gateway's own lack, of file descriptors or ports: no backend's fault
)

var failureNames = [...]string{"none", "connect", "broken", "header_timeout", "status", "stream", "local"}

// String is the name used in logs and as the reason label of metrics.
func (f Failure) String() string { return failureNames[f] }

// dependsOnPrompt reports whether the prompt may be at fault rather than the
// backend, so that one prompt alone must not open a breaker.
func (f Failure) dependsOnPrompt() bool {
	return f == BadStatus || f == StreamFailure || f == HeaderTimeout
}

// Error is a failed exchange with a backend.
type Error struct {
	Backend string
	Failure Failure
	Err     error
}

// Error says which backend failed and how.
func (e *Error) Error() string { return fmt.Sprintf("request to backend %s: %v", e.Backend, e.Err) }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Classify names the failure of an exchange: err is what Do or a read
// of the response body returned, status the response's status if there was one.
// A context that ended is no failure of the backend.
func Classify(err error, status int) Failure {
	var failed *Error
	switch {
	case err == nil:
		return classifyStatus(status)
	case errors.As(err, &failed):
		return failed.Failure
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return NoFailure
	case status != 0:
		return StreamFailure
	}
	return BrokenConnection
}

// classifyStatus: 501 says that the engine lacks what the client asked for.
func classifyStatus(status int) Failure {
	if status >= 500 && status != 501 {
		return BadStatus
	}
	return NoFailure
}

// refused reports whether err says that nobody listens at the address.
func refused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// exhausted reports whether err says that this process or host lacks something.
func exhausted(err error) bool {
	for _, lack := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}
