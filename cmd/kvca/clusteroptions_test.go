package main

import (
	"strings"
	"testing"
)

func TestClusterSettingsThatCannotWork(t *testing.T) {
	secret := writeFile(t, "secret", strings.Repeat("x", 32)+"\n")
	for _, c := range []struct {
		name  string
		flags map[string][]string
		want  string
	}{
		{"join without a port for it", map[string][]string{"gossip": {"off"}, "join": {"gw-1:7946"}}, "--join: gw-1:7946: there is no gossip port"},
		{"join without a port", map[string][]string{"join": {"gw-1"}}, `--join: "gw-1" is no address of a peer: want HOST:PORT`},
		{"join without a host", map[string][]string{"join": {":7946"}}, `--join: ":7946" is no address of a peer`},
		{"every interface", map[string][]string{"gossip": {"0.0.0.0:7946"}}, `--gossip: "0.0.0.0:7946" is every interface, which is no address to reach it by: want --advertise`},
		{"every interface, link", map[string][]string{"gossip": {"10.0.0.5:7946"}, "link": {":7947"}}, `--link: ":7947" is every interface`},
		{"advertised as every interface", map[string][]string{"advertise": {"::"}}, `--advertise: "::" is every interface`},
		{"advertised with a port", map[string][]string{"advertise": {"10.0.0.5:7946"}}, `--advertise: "10.0.0.5:7946" is no host`},
		{"loopback joins the network", map[string][]string{"join": {"10.0.0.6:7946"}}, `default: gossip: "127.0.0.1:7946" is reached from this host only, but 10.0.0.6:7946 is to be joined`},
		{"certificate alone", map[string][]string{"cluster-cert": {secret}}, "want all three, or none"},
		{"certificate without a name", map[string][]string{"cluster-key": {""}}, "--cluster-key: names no file"},
		{"secret that is not there", map[string][]string{"cluster-secret-file": {"/nonexistent"}}, "--cluster-secret-file: "},
		{"budget without end", map[string][]string{"owner-budget": {"1m"}}, "--owner-budget: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := resolve(sources{flag: flagsAre(c.flags)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestClusterSettingsThatWork(t *testing.T) {
	for name, flags := range map[string]map[string][]string{
		"defaults":                    {},
		"off":                         {"gossip": {"off"}},
		"nothing":                     {"gossip": {""}},
		"any ports":                   {"gossip": {"127.0.0.1:0"}, "link": {"127.0.0.1:0"}},
		"this host joins itself":      {"join": {"127.0.0.1:7956", "localhost:7966"}},
		"a name that may be anywhere": {"join": {"gw.example:7946"}},
		"containers":                  {"gossip": {":7946"}, "link": {":7947"}, "advertise": {"10.0.0.5"}, "join": {"10.0.0.6:7946"}},
		"by name":                     {"gossip": {"[::]:7946"}, "link": {"[::]:7947"}, "advertise": {"gw-1.example"}},
	} {
		if _, err := resolve(sources{flag: flagsAre(flags)}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPeersBackendsAreLearnedByNodesThatHaveNone(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags map[string][]string
		want  bool
	}{
		{"none", nil, true},
		{"backend", map[string][]string{"backend": {"http://a:1"}}, false},
		{"simulated", map[string][]string{"simulate": {"1"}}, false},
		{"asked to", map[string][]string{"backend": {"http://a:1"}, "learn-backends": {"true"}}, true},
		{"asked not to", map[string][]string{"learn-backends": {"false"}}, false},
	} {
		s, err := resolve(sources{flag: flagsAre(c.flags)})
		if err != nil {
			t.Fatal(err)
		}
		if s.learns() != c.want {
			t.Errorf("%s: learns %v, want %v", c.name, s.learns(), c.want)
		}
	}
}

func TestPortsThatAreOpenToTheNetworkAreWarnedOf(t *testing.T) {
	secret := writeFile(t, "secret", strings.Repeat("x", 32)+"\n")
	for _, c := range []struct {
		flags map[string][]string
		want  string
	}{
		{map[string][]string{"gossip": {"10.0.0.5:7946"}}, "whoever reaches 10.0.0.5:7946 and 127.0.0.1:7947 can pose as a node"},
		{map[string][]string{"gossip": {"10.0.0.5:7946"}, "cluster-secret-file": {secret}}, ""},
		{nil, ""},
		{map[string][]string{"gossip": {"off"}, "link": {"10.0.0.5:7947"}}, ""},
	} {
		s, err := resolve(sources{flag: flagsAre(c.flags)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.warnings, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: warnings %q, want %q", c.flags, got, c.want)
		}
	}
}
