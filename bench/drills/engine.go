package drills

import (
	"context"
	"fmt"
	"syscall"

	"kvca/bench/process"
)

// Engine is one backend in a process of its own, that can be started again.
type Engine struct {
	ID, URL string
	Start   func(ctx context.Context) (*process.Child, error)
	child   *process.Child
}

// Run starts the engine, for the first time or again.
func (e *Engine) Run(ctx context.Context) (err error) {
	if e.child, err = e.Start(ctx); err != nil {
		return fmt.Errorf("start backend %s: %w", e.ID, err)
	}
	return nil
}

// Close ends the engine, stopped or not.
func (e *Engine) Close() {
	if e.child != nil {
		_ = e.child.Signal(syscall.SIGCONT) // fails where it has ended already
		e.child.Close()
	}
}

// Kill ends the engine without a warning.
func (e *Engine) Kill() { e.child.Kill() }

// Stop stops the engine where it is; its connections stay open.
func (e *Engine) Stop() error { return e.child.Signal(syscall.SIGSTOP) }

// Continue lets a stopped engine go on.
func (e *Engine) Continue() error { return e.child.Signal(syscall.SIGCONT) }
