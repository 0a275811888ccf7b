package proxy

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A request's body is held whole: it is named before it is sent, and it may be
// sent again. Buffers are pooled by powers of two, the smallest of 4 KiB.
const smallestBuffer = 12

var buffers [40 - smallestBuffer]sync.Pool

// takeBuffer returns a buffer whose capacity is at least n.
func takeBuffer(n int64) *[]byte {
	class := max(bits.Len64(uint64(max(n, 1)-1)), smallestBuffer) - smallestBuffer
	if b, ok := buffers[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, 0, 1<<(class+smallestBuffer))
	return &b
}

func giveBuffer(b *[]byte) {
	class := bits.Len64(uint64(cap(*b)-1)) - smallestBuffer
	*b = (*b)[:0]
	buffers[class].Put(b)
}

// budget bounds the bytes that bodies take together.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// upload is one body that is being read or held.
type upload struct {
	buf    *[]byte
	booked int64 // bytes of the budget
	budget *budget
}

func (u *upload) bytes() []byte {
	if u.buf == nil {
		return nil
	}
	return *u.buf
}

// release gives the buffer and its share of the budget back; once is enough,
// twice does no harm. Nobody may read the body any more.
func (u *upload) release() {
	if u.buf != nil {
		giveBuffer(u.buf)
		u.buf = nil
	}
	u.budget.give(u.booked)
	u.booked = 0
}

// reserve makes room for n bytes in all.
func (u *upload) reserve(n int64) error {
	if u.buf != nil && n <= int64(cap(*u.buf)) {
		return nil
	}
	next := takeBuffer(n)
	if more := int64(cap(*next)) - u.booked; !u.budget.take(more) {
		giveBuffer(next)
		return unavailable("gateway_busy", fmt.Sprintf("The gateway already holds %d bytes of request bodies, its limit. Try again shortly.", u.budget.used.Load()))
	}
	u.booked = int64(cap(*next))
	if u.buf != nil {
		*next = append(*next, *u.buf...)
		giveBuffer(u.buf)
	}
	u.buf = next
	return nil
}

// replace gives the buffer back for b, which the budget has to have room for.
func (u *upload) replace(b []byte) error {
	if more := int64(cap(b)) - u.booked; !u.budget.take(more) {
		return unavailable("gateway_busy", fmt.Sprintf("The gateway already holds %d bytes of request bodies, its limit. Try again shortly.", u.budget.used.Load()))
	}
	u.booked = int64(cap(b))
	if u.buf != nil {
		giveBuffer(u.buf)
		u.buf = nil
	}
	return nil
}

// trust is how many times what has arrived of a body an announced length may
// book: enough that a long body is rarely moved, and not so much that clients who
// announce bodies and send none take the budget from those who do.
const trust = 16

var errClientGone = errors.New("the client left")

// readBody reads the whole body within the limits of size and time. Its errors
// are *apiError, or errClientGone.
func (c *current) readBody(w http.ResponseWriter, r *http.Request, u *upload) error {
	size, limit := r.ContentLength, c.MaxBodyBytes
	if size > limit {
		return tooLarge(limit)
	}
	if size == 0 {
		return nil
	}
	clock := uploadClock{rc: http.NewResponseController(w), idle: c.UploadIdle, end: time.Now().Add(c.UploadLimit)}
	for arrived := int64(0); ; arrived = int64(len(*u.buf)) {
		want := min(max(arrived+1, min(size, trust*arrived)), limit+1)
		if err := u.reserve(want); err != nil {
			return err
		}
		switch err := fill(u.buf, r.Body, &clock, size); {
		case err == io.EOF:
			if int64(len(*u.buf)) > limit {
				return tooLarge(limit)
			}
			clock.stop()
			return nil
		case err != nil:
			return uploadError(r, err)
		case int64(len(*u.buf)) > limit:
			return tooLarge(limit)
		}
	}
}

// fill reads until the buffer is full (nil) or the body has ended (io.EOF).
func fill(buf *[]byte, body io.Reader, clock *uploadClock, size int64) error {
	for len(*buf) < cap(*buf) {
		clock.arm()
		b := *buf
		n, err := body.Read(b[len(b):cap(b)])
		*buf = b[:len(b)+n]
		if err != nil {
			return err
		}
		if int64(len(*buf)) == size {
			return io.EOF
		}
	}
	return nil
}

// uploadClock keeps a read deadline ahead of a body that makes progress.
type uploadClock struct {
	rc    *http.ResponseController
	idle  time.Duration
	end   time.Time
	armed time.Time
}

// arm moves the deadline, at most ten times per idle limit.
func (c *uploadClock) arm() {
	now := time.Now()
	if now.Sub(c.armed) < c.idle/10 {
		return
	}
	c.armed = now
	deadline := now.Add(c.idle)
	if deadline.After(c.end) {
		deadline = c.end
	}
	c.rc.SetReadDeadline(deadline) // a writer without deadlines is bounded by its server's
}

// stop lifts the deadline once the body is there: what follows is the watch for a client that leaves.
func (c *uploadClock) stop() { c.rc.SetReadDeadline(time.Time{}) }

func uploadError(r *http.Request, err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &apiError{status: http.StatusRequestTimeout, code: "upload_timeout", message: "The request body did not arrive in time. Send it without pauses."}
	case r.Context().Err() != nil, errors.Is(err, io.ErrUnexpectedEOF):
		return errClientGone
	default:
		return badRequest("unreadable_body", "The request body could not be read: "+err.Error()+".", "")
	}
}

func tooLarge(limit int64) error {
	return &apiError{
		status: http.StatusRequestEntityTooLarge, code: "body_too_large",
		message: fmt.Sprintf("The request body exceeds %d bytes, the limit of this gateway.", limit),
	}
}
