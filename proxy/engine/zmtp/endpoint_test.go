package zmtp

import (
	"net"
	"path/filepath"
	"testing"
)

func TestEndpoints(t *testing.T) {
	cases := []struct {
		endpoint string
		bind     bool
		want     string // empty: a fault
	}{
		{"tcp://127.0.0.1:5557", false, "tcp 127.0.0.1:5557"},
		{"tcp://engine-0.svc.local:5557", false, "tcp engine-0.svc.local:5557"},
		{"tcp://[::1]:5557", false, "tcp [::1]:5557"},
		{"tcp://::1:5557", false, "tcp [::1]:5557"},
		{"tcp://[fe80::1%eth0]:1", false, "tcp [fe80::1%eth0]:1"},
		{"ipc:///run/kv", false, "unix /run/kv"},
		{"ipc://@abstract", true, "unix @abstract"},
		{"tcp://*:5557", true, "tcp :5557"},
		{"tcp://*:*", true, "tcp :0"},
		{"tcp://0.0.0.0:0", true, "tcp 0.0.0.0:0"},
		{"tcp://[::]:5557", true, "tcp [::]:5557"},
		{"tcp://*:5557", false, ""},
		{"tcp://engine:0", false, ""},
		{"tcp://engine:*", false, ""},
		{"tcp://engine:65536", false, ""},
		{"tcp://engine:-1", false, ""},
		{"tcp://engine", false, ""},
		{"tcp://:5557", false, ""},
		{"tcp://a/b:5557", false, ""},
		{"tcp://", true, ""},
		{"ipc://", true, ""},
		{"ipc://*", true, ""},
		{"inproc://x", true, ""},
		{"engine:5557", false, ""},
		{"", false, ""},
	}
	for _, c := range cases {
		network, address, err := Address(c.endpoint, c.bind)
		if c.want == "" && err == nil {
			t.Errorf("%q, bind %v: got %s %s: want a fault", c.endpoint, c.bind, network, address)
		}
		if c.want != "" && (err != nil || network+" "+address != c.want) {
			t.Errorf("%q, bind %v: got %s %s, %v: want %s", c.endpoint, c.bind, network, address, err, c.want)
		}
	}
}

func TestUnixSocketLeftBehindIsTakenOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kv")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l, err := Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatalf("bind where a dead process left its socket: %v", err)
	}
	defer l.Close()
	if second, err := Listen(t.Context(), "unix", path); err == nil {
		second.Close()
		t.Error("a socket that is in use was taken over: want that the address is in use")
	}
}
