package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Open reads a trace file, Mooncake's or agent sessions, packed by gzip or not.
func Open(path string, o Options) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	defer f.Close()
	t, err := Read(path, f, o)
	if err != nil {
		return nil, fmt.Errorf("read trace %w", err)
	}
	t.Name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".jsonl")
	return t, nil
}

// format reads one form of file, line by line.
type format interface {
	// line takes the next line; done tells that no more are wanted.
	line(b []byte) (done bool, err error)
	// end gives what was read.
	end() (*Trace, error)
}

// Read reads a trace from r; name is what errors call it, and the trace.
func Read(name string, r io.Reader, o Options) (*Trace, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o = o.withDefaults()
	l, err := newLines(name, r)
	if err != nil {
		return nil, err
	}
	f, err := readAll(l, o)
	if err != nil {
		return nil, err
	}
	t, err := f.end()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t.Name = name
	t.hasten(o.Speed)
	return t, nil
}

func readAll(l *lines, o Options) (format, error) {
	b, err := l.next()
	if err == io.EOF {
		return nil, fmt.Errorf("%s: want %s, it is empty", l.name, wantForms)
	}
	if err != nil {
		return nil, err
	}
	f, err := formatOf(b, o)
	if err != nil {
		return nil, l.fault(err)
	}
	for {
		done, err := f.line(b)
		if err != nil {
			return nil, l.fault(err)
		}
		if done {
			return f, nil
		}
		if b, err = l.next(); err == io.EOF {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

const wantForms = `a JSON object with "hash_ids" (Mooncake) or "s" (agent sessions)`

// formatOf tells the formats apart by a file's first line.
func formatOf(b []byte, o Options) (format, error) {
	var keys struct {
		Mooncake json.RawMessage `json:"hash_ids"`
		Agents   json.RawMessage `json:"s"`
	}
	err := json.Unmarshal(b, &keys)
	switch {
	case err != nil:
		return nil, fmt.Errorf("want %s: %w", wantForms, err)
	case keys.Mooncake != nil:
		return newMooncake(o), nil
	case keys.Agents != nil:
		return newAgents(o), nil
	}
	return nil, fmt.Errorf("want %s, came %s", wantForms, excerpt(b))
}

// excerpt is the beginning of a line, for an error.
func excerpt(b []byte) string {
	const most = 80
	if len(b) <= most {
		return fmt.Sprintf("%q", b)
	}
	return fmt.Sprintf("%q and %d bytes more", b[:most], len(b)-most)
}
