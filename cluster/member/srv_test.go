package member

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// services is a resolver that knows SRV records, beside the hosts of another one.
type services struct {
	Resolver
	mu      sync.Mutex
	records []*net.SRV
}

func (s *services) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == 0 {
		return "", nil, errors.New("no such host")
	}
	return "", s.records, nil
}

func (s *services) set(records ...*net.SRV) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = records
}

func TestNodesAreFoundBySRVRecords(t *testing.T) {
	inBubble(t, func(r *rig) {
		s := &services{Resolver: r.net}
		found := func(c *Config) { c.Join, c.Resolver = []string{"srv://_gossip._tcp.kvca"}, s }
		nodes := []*node{r.start("a", "a", nil, found), r.start("b", "b", nil, found)}
		time.Sleep(10 * time.Second)
		if agree(nodes) {
			t.Fatal("they are one before anyone could tell them of each other")
		}
		if len(nodes[0].logs.lines("does not resolve", "srv://_gossip._tcp.kvca")) == 0 {
			t.Errorf("a name without records is not told:\n%s", nodes[0].logs.tail())
		}
		s.set(&net.SRV{Target: "a.", Port: port}, &net.SRV{Target: "b.", Port: port, Priority: 9}, &net.SRV{Target: ".", Port: 1})
		r.within(10*time.Second, "two nodes form a cluster", func() bool { return agree(nodes) })
	})
}

func TestSRVJoinAddresses(t *testing.T) {
	for address, good := range map[string]bool{
		"srv://_gossip._tcp.kvca": true, "srv://": false, "srv://name:1": false, "srv://a/b": false, "srv://a?x": false,
	} {
		got, err := parseTarget(address)
		if (err == nil) != good || good && got.String() != address {
			t.Errorf("%s: %v, %v", address, got, err)
		}
	}
	// A resolver that knows addresses only says so.
	j := joiner{m: &Members{config: Config{Resolver: onlyAddresses{}}}}
	if _, err := j.records(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "SRV") {
		t.Errorf("%v", err)
	}
}

type onlyAddresses struct{}

func (onlyAddresses) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, nil
}
