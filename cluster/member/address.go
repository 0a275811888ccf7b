package member

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// target is a parsed join address.
type target struct {
	host string // a name, or empty where ip is valid
	srv  bool   // the name's SRV records say the hosts and ports
	ip   netip.Addr
	port uint16
}

func (t target) at(ip netip.Addr) string {
	return netip.AddrPortFrom(ip.Unmap(), t.port).String()
}

func (t target) String() string {
	if t.srv {
		return srvScheme + t.host
	}
	if t.ip.IsValid() {
		return t.at(t.ip)
	}
	return net.JoinHostPort(t.host, strconv.Itoa(int(t.port)))
}

// srvScheme begins a join address whose hosts and ports stand in SRV records.
const srvScheme = "srv://"

// parseTarget reads "host:port"; without a port the default one is meant. It also reads
// "srv://name".
func parseTarget(s string) (target, error) {
	if name, found := strings.CutPrefix(s, srvScheme); found {
		if name == "" || strings.ContainsAny(name, ":/?") {
			return target{}, fmt.Errorf("join address %q is not srv://name", s)
		}
		return target{host: name, srv: true}, nil
	}
	host, service, err := net.SplitHostPort(s)
	if err != nil {
		host, service = s, strconv.Itoa(defaultPort)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 || host == "" {
		return target{}, fmt.Errorf("join address %q is not host:port", s)
	}
	t := target{host: host, port: uint16(port)}
	if ip, err := netip.ParseAddr(host); err == nil {
		t.host, t.ip = "", ip.Unmap()
	}
	return t, nil
}

func (c *Config) joins() ([]target, error) {
	var all []target
	var faults []error
	for _, s := range c.Join {
		t, err := parseTarget(s)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, t)
	}
	return all, errors.Join(faults...)
}

// addresses works out where to listen and what to advertise.
func (c *Config) addresses() (addresses, error) {
	var a addresses
	var err error
	if c.Transport == nil {
		if a.bind, err = netip.ParseAddrPort(c.Bind); err != nil {
			return a, fmt.Errorf("gossip address %q is not ip:port: %w", c.Bind, err)
		}
		a.bind = netip.AddrPortFrom(a.bind.Addr().Unmap(), a.bind.Port())
	}
	switch {
	case c.Advertise != "":
		a.advertise, err = parseAdvertise(c.Advertise, a.bind.Port())
	case c.Transport == nil && a.bind.Addr().IsUnspecified():
		var ip netip.Addr
		ip, err = privateIP()
		a.advertise = netip.AddrPortFrom(ip, a.bind.Port())
	case c.Transport == nil:
		a.advertise = a.bind
	}
	return a, err
}

// parseAdvertise reads "ip:port", or "ip" with the port that is bound.
func parseAdvertise(s string, bound uint16) (netip.AddrPort, error) {
	ap, err := netip.ParseAddrPort(s)
	if err != nil {
		ip, err := netip.ParseAddr(s)
		if err != nil {
			return ap, fmt.Errorf("advertised gossip address %q is not ip:port: give the address others reach, not a name", s)
		}
		ap = netip.AddrPortFrom(ip, bound)
	}
	if ap.Addr().IsUnspecified() {
		return ap, fmt.Errorf("advertised gossip address %q is unspecified: give the address others reach", s)
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), nil
}

// privateIP is this host's first private address, IPv4 before IPv6.
func privateIP() (netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("list this host's addresses: %w", err)
	}
	var six netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil || !prefix.Addr().IsPrivate() {
			continue
		}
		if ip := prefix.Addr().Unmap(); ip.Is4() {
			return ip, nil
		} else if !six.IsValid() {
			six = ip
		}
	}
	if six.IsValid() {
		return six, nil
	}
	return six, errors.New("gossip listens on all addresses and this host has no private one: say which to advertise")
}

// reachableFrom refuses to advertise loopback to another host.
func (a addresses) reachableFrom(joins []target) error {
	if !a.advertise.Addr().IsLoopback() {
		return nil
	}
	for _, t := range joins {
		if t.ip.IsValid() && !t.ip.IsLoopback() {
			return fmt.Errorf("gossip advertises %s, which %s cannot reach: bind or advertise this host's own address", a.advertise, t)
		}
	}
	return nil
}
