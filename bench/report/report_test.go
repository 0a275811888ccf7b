package report

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTableIsAligned(t *testing.T) {
	table := Table{Header: []string{"gateway", "us"}}
	table.Add("kvca", 12)
	table.Add("µ", 1.5)
	want := "| gateway | us  |\n|---------|-----|\n| kvca    | 12  |\n| µ       | 1.5 |\n"
	if got := table.String(); got != want {
		t.Errorf("table\n%s\nwant\n%s", got, want)
	}
}

func TestFileHoldsWhatWasPrinted(t *testing.T) {
	dir := t.TempDir()
	var screen bytes.Buffer
	w, err := New(&screen, dir, "a.md", "bench cpu")
	if err != nil {
		t.Fatal(err)
	}
	w.Printf("%d rows\n", 3)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.md"))
	if err != nil || string(text) != screen.String() {
		t.Errorf("file %q, screen %q, %v", text, screen.String(), err)
	}
	if s := screen.String(); !strings.Contains(s, "`bench cpu`") || !strings.Contains(s, "cores") || !strings.HasSuffix(s, "3 rows\n") {
		t.Errorf("report %q", s)
	}
}

func TestFileNameWithPathIsRefused(t *testing.T) {
	if _, err := New(&bytes.Buffer{}, t.TempDir(), "../a", ""); err == nil {
		t.Error("a path was accepted")
	}
}

func TestFieldOf(t *testing.T) {
	if got := fieldOf("a b\t: c d\nx: y: z\n", "a b") + fieldOf("x: y: z", "x") + fieldOf("", "x"); got != "c dy: zunknown" {
		t.Errorf("got %q", got)
	}
}
