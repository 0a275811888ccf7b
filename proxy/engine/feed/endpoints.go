package feed

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"kvca/proxy/engine/zmtp"
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
	if _, _, err := zmtp.Address(endpoint, true); err != nil {
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
		list[i] = joinTCP(cmp.Or(host, "*"), port+i)
	}
	return list, nil
}

// splitTCP takes tcp://host:port apart, as an engine may bind it: the host is empty
// for a wildcard.
func splitTCP(endpoint string) (host string, port int, err error) {
	network, address, err := zmtp.Address(endpoint, true)
	if err != nil {
		return "", 0, err
	}
	if network != "tcp" {
		return "", 0, fmt.Errorf("%q: expected tcp://host:port", endpoint)
	}
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%q: %w", endpoint, err)
	}
	if host == "0.0.0.0" || host == "::" {
		host = ""
	}
	port, err = strconv.Atoi(number)
	return host, port, err
}

func joinTCP(host string, port int) string {
	if host == "*" {
		return fmt.Sprintf("tcp://*:%d", port)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(port))
}
