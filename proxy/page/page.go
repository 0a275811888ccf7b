package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// policy allows what the page needs and nothing else: its own scripts and styles, and
// requests to the node that served it.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// types are those of the files that there are; a system's own table may say otherwise.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// file is one of the page's, with its hash as its version.
type file struct {
	content []byte
	kind    string
	etag    string
}

// Handler serves the page at / and its parts below /page/.
func Handler() http.Handler {
	files, err := load(static)
	if err != nil {
		panic(err) // the files are in the binary: a test sees this first
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, files) })
}

// load reads the files by the path that they are served at.
func load(from fs.FS) (map[string]*file, error) {
	files := make(map[string]*file)
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		kind := types[path.Ext(name)]
		if kind == "" {
			return fmt.Errorf("embed %s: there is no type for its ending", name)
		}
		sum := sha256.Sum256(content)
		files["/page/"+strings.TrimPrefix(name, "static/")] = &file{content, kind, `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	files["/"] = files["/page/index.html"]
	delete(files, "/page/index.html")
	return files, err
}

func serve(w http.ResponseWriter, r *http.Request, files map[string]*file) {
	f := files[r.URL.Path]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.etag)
	// Asked for again each time, and answered by a 304: a page must not outlive the
	// node's version.
	h.Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
