package feed

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// maxRanks bounds the data-parallel ranks of one engine.
const maxRanks = 1024

// Endpoints are the sockets of an engine's data-parallel ranks: a rank adds its
// number to the port, of the event and of the replay socket alike. Bases that are
// nearer to each other than there are ranks overlap, so customary ones are 100 apart.
func Endpoints(endpoint string, ranks int) ([]string, error) {
	if ranks < 1 || ranks > maxRanks {
		return nil, fmt.Errorf("endpoints of %d ranks: expected 1 to %d", ranks, maxRanks)
	}
	if err := checkEndpoint(endpoint); err != nil {
		return nil, err
	}
	if ranks == 1 {
		return []string{endpoint}, nil
	}
	host, port, err := splitTCP(endpoint)
	if err != nil {
		return nil, fmt.Errorf("%d ranks at %s: only tcp endpoints have room for more than one rank: %w", ranks, endpoint, err)
	}
	if port+ranks-1 > 65535 {
		return nil, fmt.Errorf("%d ranks at %s: the last would have port %d, expected at most 65535", ranks, endpoint, port+ranks-1)
	}
	list := make([]string, ranks)
	for i := range list {
		list[i] = joinTCP(host, port+i)
	}
	return list, nil
}

// checkEndpoint finds what no socket could use.
func checkEndpoint(endpoint string) error {
	if path, ok := strings.CutPrefix(endpoint, "ipc://"); ok {
		if path == "" {
			return errors.New("ipc:// without a path, expected ipc:///path")
		}
		return nil
	}
	_, _, err := splitTCP(endpoint)
	return err
}

// splitTCP takes tcp://host:port apart. The host may be *, and an IPv6 address
// need not have brackets, since engines print it without.
func splitTCP(endpoint string) (host string, port int, err error) {
	rest, ok := strings.CutPrefix(endpoint, "tcp://")
	if !ok {
		return "", 0, fmt.Errorf("%q: expected tcp://host:port or ipc:///path", endpoint)
	}
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return "", 0, fmt.Errorf("%q has no port: expected tcp://host:port", endpoint)
	}
	host = strings.TrimSuffix(strings.TrimPrefix(rest[:i], "["), "]")
	port, err = strconv.Atoi(rest[i+1:])
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q: port %q, expected 0 to 65535", endpoint, rest[i+1:])
	}
	if host == "" || strings.ContainsAny(host, "/ @,") {
		return "", 0, fmt.Errorf("%q: host %q, expected a name, an address or *", endpoint, host)
	}
	return host, port, nil
}

func joinTCP(host string, port int) string {
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}
