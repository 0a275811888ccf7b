package load

import "time"

// Once sends one body on a connection of its own; an answer other than 200 is
// an error.
func Once(addr string, body []byte, timeout time.Duration) error {
	c := newConn(addr, timeout)
	defer c.close()
	return check(c.do(Request(body)))
}
