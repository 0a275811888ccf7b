package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is a node's admin API that has one answer.
func answering(t *testing.T, status int, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// cancelling ends a context when it is first written to.
type cancelling struct {
	bytes.Buffer
	cancel func()
}

func (c *cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return c.Buffer.Write(p)
}

func TestStatusTable(t *testing.T) {
	admin := answering(t, http.StatusOK, `{"node":"gw-1","cluster":"kvca","version":"1.2.3","ready":true,
		"members":[{"name":"gw-1","address":"10.0.0.1:7946","state":"alive","ready":true,"boot":"x","lag_ms":0,"dirty":false,
				"link":"self","rtt_ms":0,"owned":1,"held":0,"client":"10.0.0.1:8080","admin":"10.0.0.1:8081","differs":""},
			{"name":"gw-2","address":"10.0.0.2:7946","state":"suspect","ready":false,"boot":"y","lag_ms":12.4,"dirty":true,
				"link":"down","rtt_ms":0.31,"owned":1,"held":2,"client":"10.0.0.2:8080","admin":"10.0.0.2:8081","differs":""},
			{"name":"gw-3","address":"10.0.0.3:7946","state":"alive","ready":true,"boot":"z","lag_ms":3,"dirty":false,
				"link":"up","rtt_ms":0.12,"owned":0,"held":0,"client":"10.0.0.3:8080","admin":"10.0.0.3:8081","differs":"policy cost there, two-phase here"}],
		"backends":[{"id":"gpu-1","url":"http://10.1.0.1:8000","learned":false,"models":["a","b"],"health":"healthy",
				"peers":{"gw-3":"healthy","gw-2":"unhealthy"},"owner":"gw-2","generation":1,
				"active":3,"novel_blocks":40,"running":2,"waiting":1,"kv_usage":0.25},
			{"id":"gpu-2","url":"http://10.1.0.2:8000","learned":true,"models":["a"],"health":"draining","peers":{},"owner":"gw-1","generation":4}],
		"block_map":{"blocks":5,"locations":7,"bytes":1048576,"max_bytes":100663296,"expired":1,"evicted":2},
		"reservations":{"held":3,"granted":10,"refused":1,"degraded":2},"divergence":{"gw-2":40,"gw-3":0}}`)
	out, errs, code := kvca(t, "", "status", "--admin", admin)
	if code != 0 {
		t.Fatal(errs)
	}
	golden(t, "testdata/status.txt", out)
	out, _, code = kvca(t, "", "status", "--json", "--admin", strings.TrimPrefix(admin, "http://"))
	if code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("code %d, output %q", code, out)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	admin := answering(t, http.StatusOK, `{"node":"gw-1"}`)
	ctx, cancel := context.WithCancel(context.Background())
	out := &cancelling{cancel: cancel}
	err := newApp(strings.NewReader(""), out, io.Discard).RunContext(ctx, []string{"kvca", "status", "--watch", "--admin", admin})
	if err != nil || !strings.Contains(out.String(), "gw-1") {
		t.Errorf("error %v, output %q", err, out)
	}
}

func TestNodeThatAnswersWithAnError(t *testing.T) {
	admin := answering(t, http.StatusServiceUnavailable, `{"error":{"message":"No backend is left.","type":"server_error","param":null,"code":"no_backend"}}`)
	for _, command := range []string{"status", "explain"} {
		_, errs, code := kvca(t, "{}", command, "--admin", admin)
		if code != 1 || errs != "kvca: "+command+": the node answered 503 Service Unavailable: No backend is left.\n" {
			t.Errorf("code %d, errors %q", code, errs)
		}
	}
}

func TestNodeThatIsNotThere(t *testing.T) {
	_, errs, code := kvca(t, "", "status", "--admin", "http://127.0.0.1:1")
	if code != 1 || !strings.Contains(errs, "127.0.0.1:1") {
		t.Errorf("code %d, errors %q", code, errs)
	}
}
