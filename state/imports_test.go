package state

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// What each room of the house may import of the others, apart from itself.
// Tests may look further: a test of the proxy may run a simulated engine.
var mayImport = map[string][]string{
	"state":   {},
	"router":  {"state"},
	"cluster": {"state"},
	"proxy":   {"router", "state"},
	"bench":   {"state", "router", "cluster", "proxy"},
	"cmd":     {"state", "router", "cluster", "proxy", "bench"},
}

// The core may use of the standard library what neither waits, nor reads a
// clock, nor does I/O; the exceptions are types that it passes on.
var coreMayNot = []string{"net", "os", "log", "context", "syscall"}

func TestImportsPointOneWay(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for room := range mayImport {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
				return nil
			}
			pkg, err := build.ImportDir(path, 0)
			if err != nil {
				return nil // no Go files here
			}
			packages++
			name, _ := filepath.Rel(root, path)
			for _, imported := range pkg.Imports {
				checkImport(t, room, filepath.ToSlash(name), imported)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if packages < 10 {
		t.Fatalf("only %d packages were looked at", packages)
	}
}

func checkImport(t *testing.T, room, pkg, imported string) {
	t.Helper()
	rest, ours := strings.CutPrefix(imported, "kvca/")
	if !ours {
		top, _, _ := strings.Cut(imported, "/")
		for _, no := range coreMayNot {
			if room == "state" && top == no {
				t.Errorf("%s imports %s: the core does no I/O and reads no clock", pkg, imported)
			}
		}
		return
	}
	target, _, _ := strings.Cut(rest, "/")
	if target == room {
		return
	}
	for _, ok := range mayImport[room] {
		if target == ok {
			return
		}
	}
	t.Errorf("%s imports %s: %s may import only %v of the project", pkg, imported, room, mayImport[room])
}
