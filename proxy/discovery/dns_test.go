package discovery

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"kvca/state/virtualtime"
)

// names is a Resolver whose answers a test sets.
type names struct {
	mu      sync.Mutex
	ips     []netip.Addr
	records []*net.SRV
	err     error
	asked   int
}

func (n *names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return append([]netip.Addr(nil), n.ips...), n.err
}

func (n *names) LookupSRV(context.Context, string, string, string) (string, []*net.SRV, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	return "", n.records, n.err
}

func (n *names) set(err error, ips ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ips, n.err = nil, err
	for _, ip := range ips {
		n.ips = append(n.ips, netip.MustParseAddr(ip))
	}
}

func TestAddressesOfANameAreFollowed(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n, l := new(names), new(logs)
		n.set(nil, "10.0.0.2", "10.0.0.1", "fd00::1", "::ffff:10.0.0.1")
		to := follow(t, mustParse(t, "dns://fleet:8000", Options{Resolver: n, Logger: l.logger()}))
		to.want(t, "10.0.0.1:8000 10.0.0.2:8000")
		n.set(nil, "10.0.0.1", "10.0.0.2")
		later(time.Minute)
		if got := to.told(); got != 1 {
			t.Errorf("told %d times of the same set", got)
		}
		n.set(nil, "10.0.0.3")
		later(2 * usualInterval)
		to.want(t, "10.0.0.3:8000")
		n.set(&net.DNSError{Err: "server misbehaving", IsTemporary: true})
		later(time.Minute)
		to.want(t, "10.0.0.3:8000")
		if got := l.count("discovery failed"); got != 1 {
			t.Errorf("%d warnings of one failure:\n%s", got, l)
		}
		n.set(&net.DNSError{Err: "no such host", IsNotFound: true})
		later(2 * usualInterval)
		to.want(t, "")
		if got := to.told(); got != 3 {
			t.Errorf("told %d sets, want 3", got)
		}
		n.set(nil, "fd00::2")
		later(2 * usualInterval)
		to.want(t, "[fd00::2]:8000")
	})
}

func TestFamilies(t *testing.T) {
	all := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")}
	for family, want := range map[string]string{"one": "10.0.0.1", "4": "10.0.0.1", "6": "fd00::1", "any": "10.0.0.1 fd00::1"} {
		var got []string
		for _, ip := range ofFamily(family, all) {
			got = append(got, ip.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", family, got, want)
		}
	}
}

func TestTargetsOfSRVRecordsAreFollowed(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		n := &names{records: []*net.SRV{
			{Target: "vllm-1.vllm.default.svc.cluster.local.", Port: 8000, Priority: 10},
			{Target: "vllm-0.vllm.default.svc.cluster.local.", Port: 8001},
			{Target: "vllm-0.vllm.default.svc.cluster.local.", Port: 8001},
			{Target: ".", Port: 1},
		}}
		to := follow(t, mustParse(t, "srv://_http._tcp.vllm.default.svc.cluster.local?scheme=https&interval=1m", Options{Resolver: n}))
		to.want(t, "vllm-0.vllm.default.svc.cluster.local:8001=https://vllm-0.vllm.default.svc.cluster.local:8001 vllm-1.vllm.default.svc.cluster.local:8000=https://vllm-1.vllm.default.svc.cluster.local:8000")
		later(10*time.Minute + time.Second)
		if n.asked < 10 || n.asked > 13 {
			t.Errorf("asked %d times in ten minutes, want once a minute", n.asked)
		}
	})
}

// The standard library's resolver against a name server in the process.
func TestRealAnswersAreUnderstood(t *testing.T) {
	r := &net.Resolver{PreferGo: true, Dial: serveDNS(map[uint16][][]byte{
		1:  {{10, 0, 0, 7}, {10, 0, 0, 8}},
		33: {srvData(8000, "pod-a", "test"), srvData(9000, "pod-b", "test")},
	})}
	a := mustParse(t, "dns://fleet.test.:8000", Options{Resolver: r}).(*dnsSource)
	list, err := a.ask(t.Context())
	if got := show(list); err != nil || got != "10.0.0.7:8000 10.0.0.8:8000" {
		t.Errorf("%q, %v", got, err)
	}
	s := mustParse(t, "srv://fleet.test.", Options{Resolver: r}).(*srvSource)
	list, err = s.ask(t.Context())
	if got := show(list); err != nil || got != "pod-a.test:8000 pod-b.test:9000" {
		t.Errorf("%q, %v", got, err)
	}
	none := &net.Resolver{PreferGo: true, Dial: serveDNS(nil)}
	gone := mustParse(t, "dns://fleet.test.:8000", Options{Resolver: none}).(*dnsSource)
	if list, err := gone.ask(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("a name without addresses: %v, %v", list, err)
	}
}

func srvData(port uint16, labels ...string) []byte {
	b := []byte{0, 0, 0, 0, byte(port >> 8), byte(port)}
	for _, l := range labels {
		b = append(append(b, byte(len(l))), l...)
	}
	return append(b, 0)
}

// serveDNS dials a name server that has the same records, by type, under each name.
// Its connections are streams, so messages have their length before them.
func serveDNS(records map[uint16][][]byte) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(far, size[:]); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(far, question); err != nil {
					return
				}
				answer := answerDNS(question, records)
				far.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
			}
		}()
		return near, nil
	}
}

// answerDNS answers the one question of a message.
func answerDNS(q []byte, records map[uint16][][]byte) []byte {
	end := 12
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	kind := binary.BigEndian.Uint16(q[end+1:])
	list := records[kind]
	b := append([]byte{q[0], q[1], 0x84, 0, 0, 1, 0, byte(len(list)), 0, 0, 0, 0}, q[12:end+5]...)
	for _, data := range list {
		b = append(b, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 5, byte(len(data)>>8), byte(len(data)))
		b = append(b, data...)
	}
	return b
}
