package soak

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// flood is connections that say nothing, or half of a request.
type flood []net.Conn

// open makes up to n connections, as many as are to be had.
func (f *flood) open(ctx context.Context, addr string, n int) error {
	d := net.Dialer{Timeout: 2 * time.Second}
	var first error
	for i := range n {
		c, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			first = errors.Join(first, err)
			break
		}
		*f = append(*f, c)
		if i%2 == 0 {
			_, _ = c.Write([]byte("POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Le"))
		}
	}
	if len(*f) == 0 {
		return fmt.Errorf("flood %s: %w", addr, first)
	}
	return nil
}

func (f *flood) close() {
	for _, c := range *f {
		_ = c.Close()
	}
}

// Noise sends random bytes to every address for a while, over TCP and UDP, and returns
// how many connections and packets it were.
func Noise(ctx context.Context, addrs []string, lasts time.Duration) (conns, packets int64) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var mu sync.Mutex
	var sending sync.WaitGroup
	for _, addr := range addrs {
		for _, network := range []string{"tcp", "udp"} {
			sending.Go(func() {
				n := noise(ctx, network, addr)
				mu.Lock()
				defer mu.Unlock()
				if network == "tcp" {
					conns += n
				} else {
					packets += n
				}
			})
		}
	}
	sending.Wait()
	return conns, packets
}

// noise opens one connection after the other; what it sends begins like each protocol's
// own now and then.
func noise(ctx context.Context, network, addr string) (sent int64) {
	starts := [][]byte{nil, {0x16, 0x03, 0x01, 0x7f, 0xff}, []byte("GET / HTTP/1.1\r\n\r\n"), {0x7f, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, []byte("KVCA")}
	var d net.Dialer
	for i := 0; sleep(ctx, 5*time.Millisecond) == nil; i++ {
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			continue
		}
		text := make([]byte, 1+(i*37)%1300)
		_, _ = rand.Read(text)
		_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := c.Write(append(append([]byte{}, starts[i%len(starts)]...), text...)); err == nil {
			sent++
		}
		if network == "tcp" {
			_, _ = c.Read(text) // till it is refused, or not at all
		}
		_ = c.Close()
	}
	return sent
}
