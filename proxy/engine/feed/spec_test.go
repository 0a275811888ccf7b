package feed

import (
	"slices"
	"strings"
	"testing"
)

func TestSpecsAreRead(t *testing.T) {
	for value, want := range map[string]Spec{
		"auto":                              {Auto: true},
		"tcp://gpu-1:5557":                  {Endpoint: "tcp://gpu-1:5557"},
		"tcp://gpu-1:5557,tcp://gpu-1:5657": {Endpoint: "tcp://gpu-1:5557", Replay: "tcp://gpu-1:5657"},
		"tcp://[fd00::1]:5557":              {Endpoint: "tcp://[fd00::1]:5557"},
		"ipc:///run/kv":                     {Endpoint: "ipc:///run/kv"},
		"tcp://gpu-1:5557?topic=":           {Endpoint: "tcp://gpu-1:5557"},
		"bind:tcp://*:5557":                 {Endpoint: "tcp://*:5557", Bind: true},

		"tcp://gpu-1:5557?topic=kv@a=b,tcp://gpu-1:5657": {Endpoint: "tcp://gpu-1:5557", Replay: "tcp://gpu-1:5657", Topic: "kv@a=b"},

		"bind:tcp://0.0.0.0:5557,tcp://gpu-1:5657": {Endpoint: "tcp://0.0.0.0:5557", Replay: "tcp://gpu-1:5657", Bind: true},
	} {
		got, err := ParseSpec(value)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", value, got, err, want)
		}
	}
}

func TestSpecsWithFaultsSayWhatWouldBeRight(t *testing.T) {
	for value, want := range map[string]string{
		"":                                   "want tcp://HOST:PORT",
		"gpu-1:5557":                         `"gpu-1:5557" can't be used: want tcp://HOST:PORT to connect to, bind:tcp://*:PORT where the engine connects, ipc:///PATH, or auto`,
		"tcp://gpu-1":                        "has no port",
		"tcp://*:5557":                       "or bind:tcp://*:5557 for an engine that connects here",
		"tcp://0.0.0.0:5557":                 "or bind:tcp://0.0.0.0:5557 for",
		"tcp://gpu-1:5557,":                  "replay socket: is empty",
		"tcp://gpu-1:5557,bind:tcp://*:5657": "without bind:",
		"tcp://gpu-1:5557,tcp://gpu-1:5557":  "a socket of its own",
		"tcp://gpu-1:5557,tcp://*:5657":      "want the engine's host in its place",
		"tcp://gpu-1:5557?subject=kv":        "want ?topic=PREFIX",
		"tcp://gpu-1:5557,tcp://a:1?topic=k": "replay socket",
		"http://gpu-1:5557":                  "can't be used: want tcp://HOST:PORT",
		"auto,tcp://gpu-1:5657":              "want tcp://HOST:PORT",
	} {
		if _, err := ParseSpec(value); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", value, err, want)
		}
	}
}

func TestAllFaultsOfASpecAreNamedAtOnce(t *testing.T) {
	_, err := ParseSpec("tcp://gpu-1,tcp://gpu-2:x")
	if err == nil || !strings.Contains(err.Error(), `"tcp://gpu-1" has no port`) || !strings.Contains(err.Error(), `replay socket: "tcp://gpu-2:x"`) {
		t.Errorf("error %v", err)
	}
}

func TestRanksAddToThePort(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		ranks    int
		want     []string
	}{
		{"tcp://gpu-1:5557", 1, []string{"tcp://gpu-1:5557"}},
		{"tcp://gpu-1:5557", 3, []string{"tcp://gpu-1:5557", "tcp://gpu-1:5558", "tcp://gpu-1:5559"}},
		{"tcp://*:5557", 2, []string{"tcp://*:5557", "tcp://*:5558"}},
		{"tcp://fd00::1:5557", 2, []string{"tcp://[fd00::1]:5557", "tcp://[fd00::1]:5558"}},
		{"ipc:///run/kv", 1, []string{"ipc:///run/kv"}},
	} {
		got, err := Endpoints(c.endpoint, c.ranks)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s, %d ranks: %q, %v; want %q", c.endpoint, c.ranks, got, err, c.want)
		}
	}
}

func TestRanksWithoutRoomAreRefused(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		ranks    int
		want     string
	}{
		{"ipc:///run/kv", 2, "only tcp"},
		{"tcp://gpu-1:65535", 2, "at most 65535"},
		{"tcp://gpu-1:5557", 0, "expected 1 to"},
		{"tcp://gpu-1:5557", 1 << 40, "expected 1 to"},
		{"gpu-1", 1, "want tcp://host:port"},
	} {
		if got, err := Endpoints(c.endpoint, c.ranks); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d ranks: %q, error %v, want one with %q", c.endpoint, c.ranks, got, err, c.want)
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	f.Add("auto")
	f.Add("bind:tcp://*:5557,tcp://[::1]:5657")
	f.Add("ipc:///a,tcp://b:1")
	f.Fuzz(func(t *testing.T, value string) {
		s, err := ParseSpec(value)
		if err == nil && !s.Auto && checkEndpoint(s.Endpoint, s.Bind) != nil {
			t.Errorf("%q: taken with endpoint %q", value, s.Endpoint)
		}
		if err == nil && !s.Auto {
			Endpoints(s.Endpoint, 3)
		}
	})
}
