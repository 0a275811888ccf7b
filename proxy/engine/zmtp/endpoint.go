package zmtp

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Address gives the network and address, as package net takes them, of an
// endpoint as ZeroMQ writes it: tcp://host:port, where IPv6 may stand without its
// brackets, or ipc:///path. To bind, the host may be * and the port * or 0.
func Address(endpoint string, bind bool) (network, address string, err error) {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	switch scheme {
	case "tcp":
		address, err = tcpAddress(endpoint, rest, bind)
		return "tcp", address, err
	case "ipc":
		if rest == "" || rest == "@" || strings.Contains(rest, "*") {
			return "", "", fmt.Errorf("endpoint: %q names no path: want like ipc:///run/engine/events", endpoint)
		}
		return "unix", rest, nil
	}
	return "", "", fmt.Errorf("endpoint: %.200q can't be used: want tcp://host:port or ipc:///path", endpoint)
}

func tcpAddress(endpoint, rest string, bind bool) (string, error) {
	colon := strings.LastIndexByte(rest, ':')
	if colon < 0 {
		return "", fmt.Errorf("endpoint: %q has no port: want tcp://host:port", endpoint)
	}
	host, port := rest[:colon], rest[colon+1:]
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = inner[:len(inner)-1]
	}
	if strings.ContainsAny(host, "/[] \t\r\n") {
		return "", fmt.Errorf("endpoint: %q: %q is no host: want tcp://host:port", endpoint, host)
	}
	if bind && host == "*" {
		host = ""
	} else if host == "" || host == "*" {
		return "", fmt.Errorf("endpoint: %q names no host: want one to connect to, or tcp://*:port to bind", endpoint)
	}
	if bind && port == "*" {
		port = "0"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || (n == 0 && !bind) {
		return "", fmt.Errorf("endpoint: %q: %q is no port: want 1 to 65535", endpoint, port)
	}
	return net.JoinHostPort(host, port), nil
}
