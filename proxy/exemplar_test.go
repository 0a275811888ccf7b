package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func exposition(t *testing.T, reg *prometheus.Registry, accept string) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	metricsHandler(reg).ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatal(w.Code, err)
	}
	return string(text)
}

func TestExemplarNamesTheTraceToScrapersThatAskForIt(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(reg)
	observe(m.duration.WithLabelValues("/v1/chat/completions"), 0.3, "0af7651916cd43dd8448eb211c80319c")
	observe(m.duration.WithLabelValues("/v1/chat/completions"), 0.003, "")
	const exemplar = `# {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.3`
	open := exposition(t, reg, "application/openmetrics-text;version=1.0.0")
	if strings.Count(open, exemplar) != 1 {
		t.Errorf("want one exemplar %s in\n%s", exemplar, open)
	}
	plain := exposition(t, reg, "text/plain;version=0.0.4")
	if strings.Contains(plain, "trace_id") || !strings.Contains(plain, `kvca_request_duration_seconds_count{endpoint="/v1/chat/completions"} 2`) {
		t.Errorf("the plain format has\n%s", plain)
	}
}
