package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"kvca/cluster/agent"
	"kvca/cluster/secret"
)

// off is the address of a port that is not opened.
const off = "off"

func clusterOptions() []*option {
	return []*option{
		{
			name: "gossip", value: "HOST:PORT", def: "127.0.0.1:7946",
			usage: "where nodes find each other, TCP and UDP; off for a node that has no peers and opens no ports for any",
			set: func(s *settings, v string) error {
				if v == off || v == "" {
					s.cluster.gossip = ""
					return nil
				}
				s.cluster.gossip = v
				return checkAddress(v)
			},
		},
		{
			name: "link", value: "HOST:PORT", def: "127.0.0.1:7947", usage: "where peers connect to reserve and to share what they learn, TCP",
			set: text(func(s *settings) *string { return &s.cluster.link }, checkAddress),
		},
		{
			name: "advertise", value: "HOST", shown: "the host of --gossip and --link",
			usage: "address that peers reach this node by; needed where those are bound to every interface",
			set:   text(func(s *settings) *string { return &s.cluster.advertise }, checkHost),
		},
		{
			name: "join", value: "HOST:PORT", repeats: true,
			usage: "gossip address of a peer, or a name that resolves to many; tried for ever",
			set: func(s *settings, v string) error {
				s.cluster.join = append(s.cluster.join, v)
				return checkPeer(v)
			},
		},
		{
			name: "cluster-secret-file", value: "FILE", shown: "none",
			usage: "file with a secret a line: the first encrypts gossip and links, all are accepted; read again when it changes",
			set: func(s *settings, v string) error {
				s.cluster.secretFile = v
				_, err := secret.Open(v, slog.New(slog.DiscardHandler))
				return err
			},
		},
		{
			name: "cluster-cert", value: "FILE", shown: "derived from the secret",
			usage: "certificate of this node's links, in PEM; with --cluster-key and --cluster-ca",
			set:   text(func(s *settings) *string { return &s.cluster.certFile }, checkFile),
		},
		{
			name: "cluster-key", value: "FILE", shown: "derived from the secret", usage: "its key",
			set: text(func(s *settings) *string { return &s.cluster.keyFile }, checkFile),
		},
		{
			name: "cluster-ca", value: "FILE", shown: "none", usage: "certificates that those of peers must be signed by",
			set: text(func(s *settings) *string { return &s.cluster.caFile }, checkFile),
		},
		{
			name: "agents-file", value: "FILE", shown: "none",
			usage: "agents that may tell what backends hold, a line each: NAME TOKEN BACKEND[,BACKEND...]; read again when it changes",
			set:   setAgentsFile,
		},
		{
			name: "learn-backends", shown: "true where neither --backend nor --simulate is given, else false",
			usage: "also route to backends that peers were given; their keys and CA files are not learned",
			set: func(s *settings, v string) error {
				on, err := readBool(v)
				s.cluster.learn = &on
				return err
			},
		},
		{
			name: "owner-budget", value: "DURATION", def: "3ms",
			usage: "how long a decision waits for an owner that was found hanging, others get eight times as long; then it is made without",
			set:   durationBetween(func(s *settings) *time.Duration { return &s.cluster.ownerBudget }, 100*time.Microsecond, time.Second),
		},
		{
			name: "mixed-block-sizes", usage: "do not refuse peers with another --block-size; loads are shared with them, block maps are not",
			set: toggle(func(s *settings) *bool { return &s.cluster.mixedBlockSizes }),
		},
	}
}

// setAgentsFile takes a file of credentials. It is opened for good with the node's ports.
func setAgentsFile(s *settings, name string) error {
	s.cluster.agentsFile = name
	content, err := readBounded(name, maxFileBytes)
	if err != nil {
		return fmt.Errorf("%q %w", name, err)
	}
	if _, err := agent.ReadCredentials(bytes.NewReader(content)); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if othersRead(name) {
		s.warn("the agents' file can be read by others than its owner: chmod 600 %s", name)
	}
	return nil
}

// othersRead is whether others than its owner can read a file.
func othersRead(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// clusterSettings say how the node meets its peers.
type clusterSettings struct {
	gossip, link string // gossip is empty for a node without peers
	advertise    string
	join         []string

	secretFile                string
	agentsFile                string
	certFile, keyFile, caFile string

	learn           *bool // nil: as it follows from the backends
	ownerBudget     time.Duration
	mixedBlockSizes bool
}

// learns is whether backends are taken over from peers. A node that was given
// some is taken at its word; one that was given none has nothing else to serve.
func (s *settings) learns() bool {
	if s.cluster.learn != nil {
		return *s.cluster.learn
	}
	return s.givenNone()
}

// givenNone is whether no setting says where a backend is.
func (s *settings) givenNone() bool {
	return len(s.backends) == 0 && s.simulate == 0 && len(s.front.discover) == 0
}

// finish checks what follows from several settings. Its faults are keyed.
func (c *clusterSettings) finish() (faults []error) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	files := 0
	for _, name := range []string{c.certFile, c.keyFile, c.caFile} {
		if name != "" {
			files++
		}
	}
	if files == 1 || files == 2 {
		fault("cluster_cert: %q, cluster_key: %q, cluster_ca: %q: want all three, or none", c.certFile, c.keyFile, c.caFile)
	}
	if c.gossip == "" {
		if len(c.join) > 0 {
			fault("join: %s: there is no gossip port to reach it from: want --gossip", strings.Join(c.join, ", "))
		}
		if c.agentsFile != "" {
			fault("agents_file: %q: agents connect to --link, which --gossip off does not open: want --gossip", c.agentsFile)
		}
		return faults
	}
	if files == 3 {
		if _, err := secret.Certificates(c.certFile, c.keyFile, c.caFile, slog.New(slog.DiscardHandler)); err != nil {
			fault("cluster_cert: %w", err)
		}
	}
	return append(faults, c.checkReachable()...)
}

// checkReachable refuses addresses that peers could not reach this node by.
func (c *clusterSettings) checkReachable() (faults []error) {
	if c.advertise != "" {
		return nil
	}
	for _, own := range []struct{ key, address string }{{"gossip", c.gossip}, {"link", c.link}} {
		if isUnspecified(own.address) {
			faults = append(faults, fmt.Errorf("%s: %q is every interface, which is no address to reach it by: want --advertise with the host's", own.key, own.address))
		} else if far := firstRemote(c.join); far != "" && isLoopback(own.address) {
			faults = append(faults, fmt.Errorf("%s: %q is reached from this host only, but %s is to be joined: want an address of the network", own.key, own.address, far))
		}
	}
	return faults
}

// open is whether others than this host reach the cluster's ports.
func (c *clusterSettings) open() bool {
	return c.gossip != "" && !(isLoopback(c.gossip) && isLoopback(c.link))
}

// firstRemote is the first of the addresses that certainly is another host's.
func firstRemote(addresses []string) string {
	for _, a := range addresses {
		host, _, _ := net.SplitHostPort(a)
		if ip, err := netip.ParseAddr(host); err == nil && !ip.IsLoopback() {
			return a
		}
	}
	return ""
}

func isUnspecified(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// checkPeer checks an address to connect to.
func checkPeer(text string) error {
	if name, srv := strings.CutPrefix(text, "srv://"); srv && name != "" && checkName(name) == nil && !strings.ContainsAny(name, "/:?") {
		return nil
	}
	host, port, err := net.SplitHostPort(text)
	if checkAddress(text) != nil || err != nil || host == "" || port == "0" {
		return fmt.Errorf("%q is no address of a peer: want HOST:PORT, such as gw-1:7946, or srv://NAME", text)
	}
	return nil
}

// checkHost checks an address without a port.
func checkHost(text string) error {
	ip, err := netip.ParseAddr(text)
	switch {
	case err == nil && ip.IsUnspecified():
		return fmt.Errorf("%q is every interface: want the address that peers reach this node by", text)
	case err == nil:
		return nil
	case checkName(text) != nil || strings.ContainsAny(text, ":/[]"):
		return fmt.Errorf("%q is no host: want an address or a name without a port, such as 10.0.0.5", text)
	}
	return nil
}

// checkFile checks a file's name; what is in it is read when all is known.
func checkFile(text string) error {
	if text == "" {
		return errors.New("names no file: want its name")
	}
	return nil
}
