package soak

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Pipe is a named pipe that stands for a disk: while it is blocked, nobody reads what
// is written to it, and it holds 64 KiB.
type Pipe struct {
	Path    string
	file    *os.File
	blocked atomic.Bool
	lines   atomic.Int64
	reading sync.WaitGroup
}

// NewPipe makes the pipe and reads it.
func NewPipe(path string) (*Pipe, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("make pipe %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // also for writing, so that it never ends
	if err != nil {
		return nil, fmt.Errorf("open pipe: %w", err)
	}
	p := &Pipe{Path: path, file: f}
	p.reading.Go(p.read)
	return p, nil
}

func (p *Pipe) read() {
	buf := make([]byte, 32<<10)
	for {
		for p.blocked.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		n, err := p.file.Read(buf)
		if err != nil {
			return
		}
		for _, c := range buf[:n] {
			if c == '\n' {
				p.lines.Add(1)
			}
		}
	}
}

// Block stops reading, Drain goes on.
func (p *Pipe) Block() { p.blocked.Store(true) }

// Drain reads on.
func (p *Pipe) Drain() { p.blocked.Store(false) }

// Lines is how many lines have come.
func (p *Pipe) Lines() int64 { return p.lines.Load() }

// Close ends the reader.
func (p *Pipe) Close() error {
	p.Drain()
	err := p.file.Close()
	p.reading.Wait()
	return err
}
