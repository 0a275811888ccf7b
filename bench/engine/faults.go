package engine

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The ways in which a request can be made to fail.
const (
	failNone       = ""
	failRefuse     = "refuse-before-headers" // the connection ends without an answer
	failBreak      = "break-stream"          // it ends within the answer
	failErrorEvent = "error-event"           // the stream carries an error and ends
	failHang       = "hang"                  // no answer, ever
	failSlow       = "slow"                  // the answer comes late
)

var failModes = []string{failNone, "429", "500", "502", "503", "504", failRefuse, failBreak, failErrorEvent, failHang, failSlow}

// errBroken makes a handler cut the connection.
var errBroken = errors.New("connection is to break")

// faults is what has been ordered to go wrong.
type faults struct {
	mu        sync.Mutex
	mode      string
	left      int // requests still to fail; below 0: all
	delay     time.Duration
	unhealthy bool
}

func (f *faults) take() (mode string, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return failNone, 0
	}
	f.left = max(f.left-1, -1)
	return f.mode, f.delay
}

// order is the body of POST /sim/fail.
type order struct {
	Mode    string `json:"mode"`
	Count   *int   `json:"count"`    // 1 by default; below 0: until further notice
	DelayMS int    `json:"delay_ms"` // for "slow"; 1,000 by default
	Of      string `json:"of"`       // "render": what turns requests into tokens and back; by default all else that does a model's work
}

// faultsOf finds what an order is about.
func (s *Server) faultsOf(kind string) (*faults, error) {
	switch kind {
	case "":
		return &s.faults, nil
	case "render":
		return &s.textFaults, nil
	}
	return nil, badRequest("of", `of %q: want "render", or nothing`, kind)
}

func (f *faults) set(o order) error {
	if !slices.Contains(failModes, o.Mode) {
		return badRequest("mode", "mode %q: want one of %q", o.Mode, failModes)
	}
	count := 1
	if o.Count != nil {
		count = max(*o.Count, -1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode, f.left, f.delay = o.Mode, count, time.Second
	if o.DelayMS > 0 {
		f.delay = time.Duration(o.DelayMS) * time.Millisecond
	}
	return nil
}

// failFirst does what goes wrong before the endpoint is asked; it reports whether the call is over.
func (c *call) failFirst(f *faults) bool {
	mode, delay := f.take()
	switch mode {
	case failNone:
		return false
	case failBreak, failErrorEvent:
		c.fault = mode
		return false
	case failSlow:
		return c.pause(delay)
	}
	c.discardBody()
	switch mode {
	case failRefuse:
		panic(http.ErrAbortHandler)
	case failHang:
		return c.pause(1 << 62)
	}
	status, _ := strconv.Atoi(mode) // a mode of the list
	c.refuse(&apiError{Status: status, Kind: http.StatusText(status), Message: "failing as ordered"})
	return true
}

// discardBody reads the body to its end, so that a client that leaves is noticed.
func (c *call) discardBody() {
	var ignored json.RawMessage
	_ = c.decode(&ignored)
}

// pause waits; it reports whether the client left or the engine stopped meanwhile.
func (c *call) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-c.r.Context().Done():
		c.s.endings.aborted.Add(1)
	case <-c.s.driver.stopped:
		panic(http.ErrAbortHandler)
	}
	return true
}

// breakStream does what goes wrong within a stream.
func (c *call) breakStream(st *stream) error {
	switch c.fault {
	case failBreak:
		return errBroken
	case failErrorEvent:
		c.fault = failNone
		e := &apiError{Status: http.StatusInternalServerError, Kind: "InternalServerError", Message: "failing as ordered"}
		name := ""
		if c.anthropic {
			name = "error"
		}
		st.event(name, string(e.body(c.anthropic)))
		if err := st.flush(); err != nil {
			return err
		}
		return errEnded
	}
	return nil
}

// errEnded makes a handler stop where it is; the connection ends in good order.
var errEnded = errors.New("answer has ended")

// breakUnstreamed cuts an answer that is not streamed in the middle: its length is announced and not kept.
func (c *call) breakUnstreamed() error {
	if c.fault == failNone {
		return nil
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Content-Length", "1000")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write([]byte(`{"id":`))
	_ = http.NewResponseController(c.w).Flush()
	return errBroken
}
