package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Store keeps outcomes in a file, a JSON line each, added as they come. The zero
// Store keeps nothing.
type Store struct {
	path  string
	found map[string]*Outcome
	cut   bool // the file's last line is not whole
}

// OpenStore reads what is there. Lines that are cut short, as the last one of an
// interrupted program, are passed over.
func OpenStore(path string) (*Store, error) {
	s := &Store{path: path, found: map[string]*Outcome{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open results: %w", err)
	}
	for line := range bytes.Lines(text) {
		o := new(Outcome)
		if json.Unmarshal(line, o) == nil && o.Fingerprint != "" {
			s.found[o.Fingerprint] = o
		}
	}
	s.cut = len(text) > 0 && text[len(text)-1] != '\n'
	return s, nil
}

// get is the latest outcome under a fingerprint, by any program where build is "".
func (s *Store) get(fingerprint, build string) *Outcome {
	o := s.found[fingerprint]
	if o == nil || build != "" && o.Build != build {
		return nil
	}
	return o
}

// put adds an outcome.
func (s *Store) put(o *Outcome) error {
	if s.path == "" {
		return nil
	}
	line, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keep result: %w", err)
	}
	if s.cut {
		line = append([]byte("\n"), line...)
	}
	s.cut = false
	_, err = f.Write(append(line, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep result in %s: %w", s.path, err)
	}
	return nil
}
