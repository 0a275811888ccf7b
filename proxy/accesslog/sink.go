package accesslog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// checkEvery is how often the file's name is looked at, at most.
const checkEvery = time.Second

// sink is the file, or standard output. Its lock is held while it is written to:
// only the writer and Reopen wait for it.
type sink struct {
	path string // "" for standard output

	mu      sync.Mutex
	out     io.Writer
	file    *os.File // nil for standard output
	checked time.Time
}

func openSink(path string, standard io.Writer) (*sink, error) {
	if path == Standard {
		if standard == nil {
			standard = os.Stdout
		}
		return &sink{out: standard}, nil
	}
	s := &sink{path: path}
	return s, s.open(time.Now())
}

// open opens the file and lets go of the one before. The caller holds the lock, or
// is alone.
func (s *sink) open(now time.Time) error {
	// Opening a pipe waits for its reader.
	if info, err := os.Stat(s.path); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return fmt.Errorf("%s is a named pipe: name a file, or %q for standard output", s.path, Standard)
	}
	file, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if s.file != nil {
		s.file.Close() // what was written to it is with the system already
	}
	s.out, s.file, s.checked = file, file, now
	return nil
}

func (s *sink) reopen(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == "" {
		return nil
	}
	return s.open(now)
}

// write writes whole lines. Where the file was moved away and no other can be
// opened, they go to the one that was moved, and the error says why.
func (s *sink) write(lines []byte, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var moved error
	if s.path != "" && now.Sub(s.checked) >= checkEvery {
		s.checked = now
		if s.elsewhere() {
			moved = s.open(now)
		}
	}
	_, err := s.out.Write(lines)
	return errors.Join(moved, err)
}

// elsewhere is whether the path no longer leads to the open file.
func (s *sink) elsewhere() bool {
	there, err := os.Stat(s.path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	open, err := s.file.Stat()
	return err == nil && !os.SameFile(there, open)
}

// close may be called again.
func (s *sink) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.path, s.file, s.out = "", nil, io.Discard
	return err
}
