package feed

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// pages is an engine that has these.
func pages(list map[string]string) Do {
	return func(_ context.Context, _, target string) ([]byte, int, error) {
		if body, ok := list[target]; ok {
			return []byte(body), 200, nil
		}
		return []byte("not found"), 404, nil
	}
}

func TestARecordedEngineIsDiscovered(t *testing.T) {
	page, err := os.ReadFile("testdata/kv_event_sources.json")
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]Spec{
		"gpu-1":     {Endpoint: "tcp://gpu-1:5567", Replay: "tcp://gpu-1:5568", Topic: "kv-events"},
		"127.0.0.1": {Endpoint: "tcp://127.0.0.1:5567", Replay: "tcp://127.0.0.1:5568", Topic: "kv-events"},
		"fd00::1":   {Endpoint: "tcp://[fd00::1]:5567", Replay: "tcp://[fd00::1]:5568", Topic: "kv-events"},
	} {
		got, err := Discover(t.Context(), host, pages(map[string]string{"/kv_event_sources": string(page)}))
		if err != nil || !slices.Equal(got, []Spec{want}) {
			t.Errorf("%s: %+v, %v; want %+v", host, got, err, want)
		}
	}
}

func TestEnginesAreDiscovered(t *testing.T) {
	const on = `"enable_kv_cache_events":true,"publisher":"zmq"`
	for _, c := range []struct {
		name, page, body string
		want             []Spec
	}{
		{
			"vLLM, ranks with their own ports", "/kv_event_sources",
			`{"1":{` + on + `,"endpoint":"tcp://*:5558","replay_endpoint":null},"0":{` + on + `,"endpoint":"tcp://*:5557","replay_endpoint":null}}`,
			[]Spec{{Endpoint: "tcp://gpu-1:5557"}, {Endpoint: "tcp://gpu-1:5558", Rank: 1}},
		},
		{
			"vLLM, ranks that name the base", "/kv_event_sources",
			`{"0":{` + on + `,"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"},"2":{` + on + `,"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}}`,
			[]Spec{{Endpoint: "tcp://gpu-1:5557", Replay: "tcp://gpu-1:5657"}, {Endpoint: "tcp://gpu-1:5559", Replay: "tcp://gpu-1:5659", Rank: 2}},
		},
		{
			"vLLM, IPv6 wildcard", "/kv_event_sources", `{"0":{` + on + `,"endpoint":"tcp://:::5557","replay_endpoint":"tcp://[::1]:5657"}}`,
			[]Spec{{Endpoint: "tcp://gpu-1:5557", Replay: "tcp://gpu-1:5657"}},
		},
		{
			"vLLM on this machine's sockets", "/kv_event_sources", `{"0":{` + on + `,"endpoint":"ipc:///run/kv"}}`,
			[]Spec{{Endpoint: "ipc:///run/kv"}},
		},
		{
			"SGLang", "/server_info", `{"version":"0.6","kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"topic":"kv","block_size":64,"dp_size":2}}`,
			[]Spec{{Endpoint: "tcp://gpu-1:5557", Topic: "kv"}, {Endpoint: "tcp://gpu-1:5558", Topic: "kv", Rank: 1}},
		},
		{
			"SGLang, bound to all addresses", "/server_info", `{"kv_events":{"publisher":"zmq","endpoint_host":"0.0.0.0","endpoint_port_base":5557}}`,
			[]Spec{{Endpoint: "tcp://gpu-1:5557"}},
		},
	} {
		got, err := Discover(t.Context(), "gpu-1", pages(map[string]string{c.page: c.body}))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

func TestWhatKeepsAnEngineFromBeingDiscoveredIsSaid(t *testing.T) {
	const on = `"enable_kv_cache_events":true,"publisher":"zmq"`
	for _, c := range []struct{ name, page, body, want string }{
		{"no page", "/nothing", "", "does not say where"},
		{"SGLang without events", "/server_info", `{"version":"0.6"}`, "does not say where"},
		{"SGLang with null", "/server_info", `{"kv_events":{"publisher":"null"}}`, "expected zmq"},
		{"SGLang that connects", "/server_info", `{"kv_events":{"publisher":"zmq","endpoint_host":"10.0.0.9","endpoint_port_base":5557}}`, "bind:tcp://"},
		{"an engine that connects", "/kv_event_sources", `{"0":{` + on + `,"endpoint":"tcp://127.0.0.1:5557"}}`, "tcp://*:5557"},
		{"all addresses, to vLLM an address to connect to", "/kv_event_sources", `{"0":{` + on + `,"endpoint":"tcp://0.0.0.0:5557"}}`, "tcp://*:5557"},
		{"events off", "/kv_event_sources", `{"0":{"enable_kv_cache_events":false,"publisher":"zmq","endpoint":"tcp://*:5557"}}`, "expected true and zmq"},
		{"null publisher", "/kv_event_sources", `{"0":{"enable_kv_cache_events":true,"publisher":"null","endpoint":"tcp://*:5557"}}`, "expected true and zmq"},
		{"no ranks", "/kv_event_sources", `{}`, "0 ranks"},
		{"a rank that is none", "/kv_event_sources", `{"x":{` + on + `,"endpoint":"tcp://*:5557"}}`, `"x"`},
		{"no JSON", "/kv_event_sources", `<html>`, "expected a JSON object"},
		{"a list", "/kv_event_sources", `[]`, "expected a JSON object"},
		{"no port", "/kv_event_sources", `{"0":{` + on + `,"endpoint":"tcp://*"}}`, "no port"},
		{"a replay socket that is none", "/kv_event_sources", `{"0":{` + on + `,"endpoint":"tcp://*:5557","replay_endpoint":"5657"}}`, "replay_endpoint"},
	} {
		got, err := Discover(t.Context(), "gpu-1", pages(map[string]string{c.page: c.body}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, error %v, want one with %q", c.name, got, err, c.want)
		}
	}
}

func TestAnEngineThatDoesNotAnswerIsAnError(t *testing.T) {
	refused := errors.New("refused")
	_, err := Discover(t.Context(), "gpu-1", func(context.Context, string, string) ([]byte, int, error) { return nil, 0, refused })
	if !errors.Is(err, refused) {
		t.Errorf("error %v, want %v", err, refused)
	}
	_, err = Discover(t.Context(), "gpu-1", func(context.Context, string, string) ([]byte, int, error) { return nil, 500, nil })
	if err == nil || !strings.Contains(err.Error(), "status 500") {
		t.Errorf("error %v, want one with the status", err)
	}
}

func FuzzDiscover(f *testing.F) {
	f.Add([]byte(`{"0":{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5567","replay_endpoint":"tcp://127.0.0.1:5568"}}`))
	f.Add([]byte(`{"kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"dp_size":2}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, page := range []string{"/kv_event_sources", "/server_info"} {
			specs, err := Discover(t.Context(), "gpu-1", pages(map[string]string{page: string(body)}))
			for _, s := range specs {
				if err == nil && checkEndpoint(s.Endpoint, false) != nil {
					t.Errorf("%s: endpoint %q", page, s.Endpoint)
				}
			}
		}
	})
}
