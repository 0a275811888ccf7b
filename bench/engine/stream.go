package engine

import (
	"net/http"
)

// stream writes server-sent events. Each write is flushed, as a real server's are.
type stream struct {
	c      *call
	rc     *http.ResponseController
	buf    []byte
	opened bool
	sent   int
}

func (c *call) stream() *stream {
	st := &stream{c: c, rc: http.NewResponseController(c.w)}
	if !c.s.cfg.HeadersWithFirstToken {
		st.open()
		_ = st.rc.Flush()
	}
	return st
}

func (st *stream) open() {
	if st.opened {
		return
	}
	st.opened = true
	h := st.c.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	st.c.w.WriteHeader(http.StatusOK)
}

// event queues one event, with a name where the API gives them names. Nothing is sent before flush.
func (st *stream) event(name string, data ...string) {
	if name != "" {
		st.buf = append(append(append(st.buf, "event: "...), name...), '\n')
	}
	st.buf = append(st.buf, "data: "...)
	for _, part := range data {
		st.buf = append(st.buf, part...)
	}
	st.buf = append(st.buf, "\n\n"...)
}

// flush sends what is queued. A stream that is to break does so after its first events.
func (st *stream) flush() error {
	if len(st.buf) == 0 {
		return nil
	}
	st.open()
	if _, err := st.c.w.Write(st.buf); err != nil {
		return errClientGone
	}
	st.buf = st.buf[:0]
	if err := st.rc.Flush(); err != nil {
		return errClientGone
	}
	st.sent++
	return st.c.breakStream(st)
}

// follow streams jobs: news is called with each that has got further, and queues events.
func (st *stream) follow(jobs []*job, news func(*job)) error {
	seen := make([]int, len(jobs))
	ended := make([]bool, len(jobs))
	return st.c.s.driver.follow(st.c.r.Context(), jobs, func() error {
		for i, j := range jobs {
			if j.bad {
				return errStopped
			}
			if j.produced == seen[i] && j.done == ended[i] {
				continue
			}
			seen[i], ended[i] = j.produced, j.done
			news(j)
			if j.done {
				st.c.s.endings.finished(j.finish)
			}
		}
		return st.flush()
	})
}
