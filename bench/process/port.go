package process

import (
	"fmt"
	"net"
)

// FreePorts finds ports of 127.0.0.1 on which nothing listens. Somebody else may
// take one before it is used; a program that must be told its port can't do
// better.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // all at the end, so that no port comes twice
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
