package nodes

import (
	"fmt"
	"net"
	"strconv"

	"kvca/bench/process"
)

// Place is where a node runs and what it is called.
type Place struct {
	Name string
	// Enter is put in front of the node's command line.
	Enter []string
	// Client and Admin are where it serves clients and people, Gossip and Link
	// where it meets its peers; each is a host and a port.
	Client, Admin, Gossip, Link string
	// Flags are added to the node's command line, behind those of all nodes.
	Flags []string
}

// Local finds places for n nodes on 127.0.0.1.
func Local(n int) ([]Place, error) {
	const each = 4
	ports, err := process.FreePorts(each * n)
	if err != nil {
		return nil, err
	}
	places := make([]Place, n)
	for i := range places {
		addr := func(k int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[each*i+k])) }
		places[i] = Place{Name: fmt.Sprintf("node-%d", i), Client: addr(0), Admin: addr(1), Gossip: addr(2), Link: addr(3)}
	}
	return places, nil
}
