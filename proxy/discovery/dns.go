package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"kvca/proxy/backend"
)

// dnsSource finds a backend at each address of a name.
type dnsSource struct {
	progress
	shape
	resolver Resolver
	host     string
	port     uint16
	family   string
	interval time.Duration
}

func newDNS(spec, rest string, q *query, o Options) (Source, error) {
	host, text, err := net.SplitHostPort(rest)
	if err != nil || host == "" {
		return nil, errors.New("want dns://NAME:PORT")
	}
	s := &dnsSource{progress: newProgress(spec, o), resolver: o.Resolver, host: host}
	s.shape, s.interval = q.takeShape(host), q.takeInterval()
	s.family = q.oneOf("family", "one", "one", "4", "6", "any")
	s.port, err = readPort(text)
	return s, errors.Join(err, q.end())
}

// Run asks for the addresses until ctx ends.
func (s *dnsSource) Run(ctx context.Context, found func([]backend.Config)) {
	s.poll(ctx, s.interval, s.ask, found)
}

func (s *dnsSource) ask(ctx context.Context) ([]backend.Config, error) {
	ips, err := s.resolver.LookupNetIP(ctx, "ip", s.host)
	if absent(err) {
		s.note(fmt.Errorf("%s has no address", s.host))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", s.host, err)
	}
	s.note(nil)
	for i := range ips {
		ips[i] = ips[i].Unmap()
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	var list []backend.Config
	for _, ip := range ofFamily(s.family, slices.Compact(ips)) {
		list = append(list, s.at(ip.String(), s.port))
	}
	return list, nil
}

// ofFamily picks addresses. By default those of IPv4, if there are any: an engine
// with two addresses would else be two backends.
func ofFamily(family string, ips []netip.Addr) []netip.Addr {
	four := slices.DeleteFunc(slices.Clone(ips), netip.Addr.Is6)
	six := slices.DeleteFunc(slices.Clone(ips), netip.Addr.Is4)
	switch {
	case family == "any":
		return ips
	case family == "4", family == "one" && len(four) > 0:
		return four
	}
	return six
}

// srvSource finds a backend at each target of a name's SRV records. Priorities and
// weights of the records don't count: the router weighs load by itself.
type srvSource struct {
	progress
	shape
	resolver Resolver
	name     string
	interval time.Duration
}

func newSRV(spec, rest string, q *query, o Options) (Source, error) {
	if rest == "" || strings.ContainsAny(rest, ":/") {
		return nil, errors.New("want srv://NAME, such as srv://_http._tcp.vllm.default.svc.cluster.local")
	}
	s := &srvSource{progress: newProgress(spec, o), resolver: o.Resolver, name: rest}
	s.shape, s.interval = q.takeShape(""), q.takeInterval()
	return s, q.end()
}

// Run asks for the records until ctx ends.
func (s *srvSource) Run(ctx context.Context, found func([]backend.Config)) {
	s.poll(ctx, s.interval, s.ask, found)
}

func (s *srvSource) ask(ctx context.Context) ([]backend.Config, error) {
	_, records, err := s.resolver.LookupSRV(ctx, "", "", s.name)
	if absent(err) {
		s.note(fmt.Errorf("%s has no SRV record", s.name))
		return nil, nil
	}
	if err != nil && len(records) == 0 {
		return nil, fmt.Errorf("look up SRV records of %s: %w", s.name, err)
	}
	s.note(nil)
	var list []backend.Config
	for _, r := range records {
		if host := strings.TrimSuffix(r.Target, "."); host != "" && r.Port != 0 {
			list = append(list, s.at(host, r.Port))
		}
	}
	slices.SortFunc(list, func(a, b backend.Config) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(list, func(a, b backend.Config) bool { return a.ID == b.ID }), nil
}

// absent reports whether DNS says that there is no such name or record, rather than
// nothing.
func absent(err error) bool {
	var d *net.DNSError
	return errors.As(err, &d) && d.IsNotFound && !d.IsTemporary && !d.IsTimeout
}
