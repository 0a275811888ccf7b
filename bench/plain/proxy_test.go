package plain

import (
	"net/http/httptest"
	"strings"
	"testing"

	"kvca/bench/fake"
)

func TestSpreadsEvenly(t *testing.T) {
	f, err := fake.Start(fake.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := New(f.URLs())
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader("{}")))
		if w.Code != 200 {
			t.Fatalf("status %d", w.Code)
		}
	}
	for i, b := range f.Stats().Backends {
		if b.Requests != 2 {
			t.Errorf("backend %d served %d of 8, want 2", i, b.Requests)
		}
	}
}
