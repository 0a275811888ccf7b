package member

import (
	"net/netip"
	"strings"
	"testing"
)

func TestConfigSaysAllThatIsWrong(t *testing.T) {
	c := Config{Name: strings.Repeat("n", 200), Join: []string{"host:port", ":1", "ok:1"}, Advertise: "gateway:1"}
	_, err := New(c)
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, mark := range []string{"node name", "cluster name", "protocol range", `"host:port"`, `":1"`, `"gateway:1"`} {
		if !strings.Contains(err.Error(), mark) {
			t.Errorf("%q does not name %s", err, mark)
		}
	}
}

func TestAdvertisedAddress(t *testing.T) {
	for _, c := range []struct {
		bind, advertise, join string
		want                  string // empty: a fault that contains fault
		fault                 string
	}{
		{bind: "127.0.0.1:1", want: "127.0.0.1:1"},
		{bind: "10.1.1.1:1", join: "10.1.1.2:1", want: "10.1.1.1:1"},
		{bind: "0.0.0.0:1", advertise: "10.1.1.1:2", want: "10.1.1.1:2"},
		{bind: "[::]:1", advertise: "10.1.1.1", want: "10.1.1.1:1"},
		{bind: "127.0.0.1:1", join: "name:1", want: "127.0.0.1:1"},
		{bind: "127.0.0.1:1", join: "127.0.0.1:2", want: "127.0.0.1:1"},
		{bind: "10.1.1.1:1", advertise: "0.0.0.0:1", fault: "unspecified"},
		{bind: "10.1.1.1:1", advertise: "::", fault: "unspecified"},
		{bind: "127.0.0.1:1", join: "10.1.1.2:1", fault: "cannot reach"},
		{bind: "localhost:1", fault: "not ip:port"},
	} {
		config := Config{Name: "n", Cluster: "c", Bind: c.bind, Advertise: c.advertise, Meta: goodMeta()}
		if c.join != "" {
			config.Join = []string{c.join}
		}
		a, err := config.check()
		switch {
		case c.fault != "":
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%+v: %v, want a fault about %q", c, err, c.fault)
			}
		case err != nil || a.advertise != netip.MustParseAddrPort(c.want):
			t.Errorf("%+v: %v, %v", c, a.advertise, err)
		}
	}
}

func TestUnspecifiedBindAdvertisesAPrivateAddress(t *testing.T) {
	config := Config{Name: "n", Cluster: "c", Bind: "0.0.0.0:1", Meta: goodMeta()}
	if _, err := privateIP(); err != nil {
		t.Skip(err) // nothing to advertise on this machine
	}
	a, err := config.check()
	if err != nil {
		t.Fatal(err)
	}
	if !a.advertise.Addr().IsPrivate() || a.advertise.Port() != 1 {
		t.Fatalf("advertises %v", a.advertise)
	}
}
