package page

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestEveryFileIsServedWithItsTypeAndGuards(t *testing.T) {
	files, err := load(static)
	if err != nil {
		t.Fatal(err)
	}
	for path, f := range files {
		w := get(t, path)
		h := w.Header()
		if w.Code != http.StatusOK || w.Body.String() != string(f.content) || h.Get("Content-Type") != f.kind {
			t.Errorf("%s: status %d, type %q", path, w.Code, h.Get("Content-Type"))
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": policy, "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, h.Get(name), want)
			}
		}
		if again := get(t, path, "If-None-Match", h.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s asked for again: status %d, %d bytes", path, again.Code, again.Body.Len())
		}
	}
	for _, path := range []string{"/", "/page/app.js", "/page/style.css", "/page/vendor/uPlot.esm.js", "/page/vendor/uPlot.LICENSE.txt"} {
		if files[path] == nil {
			t.Errorf("there is no %s", path)
		}
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	for _, path := range []string{"/page/", "/page", "/page/../page.go", "/page/index.html", "/page/none.js", "/static/app.js", "/index.html"} {
		if w := get(t, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}
}

func TestVersionsOfAFileHaveTheirOwnTags(t *testing.T) {
	tag := func(text string) string {
		files, err := load(fstest.MapFS{"static/index.html": {Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return files["/"].etag
	}
	if a, b := tag("a"), tag("b"); a == b || a != tag("a") {
		t.Errorf("tags %s and %s", a, b)
	}
	if _, err := load(fstest.MapFS{"static/x.exe": {Data: []byte("x")}}); err == nil {
		t.Error("a file without a type is no error")
	}
}

// What the policy forbids would fail in a browser only; here it fails everywhere.
func TestNothingIsInlineOrFromElsewhere(t *testing.T) {
	inline := regexp.MustCompile(`(?i)<style|<script[^>]*>[^<]|\son[a-z]+=|\sstyle=|javascript:|innerHTML|insertAdjacentHTML|document\.write|\beval\(`)
	elsewhere := regexp.MustCompile(`(?i)(src|href|url|from|import|fetch)\s*[=(]?\s*["'(]?(https?:)?//[a-z]`)
	err := fs.WalkDir(static, "static", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "static/vendor/") {
			return err
		}
		b, err := fs.ReadFile(static, path)
		for _, rule := range []*regexp.Regexp{inline, elsewhere} {
			if found := rule.FindString(string(b)); found != "" {
				t.Errorf("%s has %q", path, found)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
