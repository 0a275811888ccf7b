package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range from which the system takes those of outgoing
// connections, so that one is still free when a killed program wants its own back.
const (
	firstPort = 20_000
	pastPorts = 32_768
)

// FreePorts finds n ports of 127.0.0.1 on which nothing listens, neither TCP nor
// UDP. Somebody else may take one before it is used; a program that must be told
// its port can't do better.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		if tries > 100*n {
			return nil, errors.New("find a free port: none of many is free")
		}
		port := firstPort + rand.IntN(pastPorts-firstPort)
		release, err := hold(port)
		if err != nil {
			continue
		}
		defer release() // all at the end, so that no port comes twice
		ports = append(ports, port)
	}
	return ports, nil
}

// hold listens on a port until it is released.
func hold(port int) (release func(), err error) {
	addr := "127.0.0.1:" + strconv.Itoa(port)
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("try a port: %w", err)
	}
	p, err := net.ListenPacket("udp", addr)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("try a port: %w", err)
	}
	return func() { p.Close(); l.Close() }, nil
}
