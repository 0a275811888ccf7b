package report

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Writer prints a report, and keeps it for a file where one is wanted.
type Writer struct {
	screen io.Writer
	path   string
	text   []byte
}

// New begins a report with its head. name is the file below dir that Close
// writes, empty for none.
func New(screen io.Writer, dir, name, command string) (*Writer, error) {
	w := &Writer{screen: screen}
	if name != "" {
		if name != filepath.Base(name) {
			return nil, fmt.Errorf("output %q: want a file name without a path", name)
		}
		w.path = filepath.Join(dir, name)
	}
	w.Printf("%s\n%s\n`%s`\n\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"), Machine(), command)
	return w, nil
}

// Printf writes text to the screen and to the report.
func (w *Writer) Printf(format string, args ...any) {
	text := fmt.Appendf(nil, format, args...)
	w.text = append(w.text, text...)
	_, _ = w.screen.Write(text)
}

// Close writes the file.
func (w *Writer) Close() error {
	if w.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(w.path), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(w.path, w.text, 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
