package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopTime is how long a child may take to end before it is killed.
const stopTime = 5 * time.Second

// Child is a running program in a process group of its own. Close ends it.
type Child struct {
	PID     int
	log     string
	process *os.Process
	stop    context.CancelFunc
	exited  chan struct{}
}

// Spec is how to start a child.
type Spec struct {
	// Name names it in errors and names its log.
	Name string
	Args []string
	// Env is added to the environment.
	Env []string
	// Dir takes its log.
	Dir string
}

// Start starts a child. It is ended when ctx ends, at the latest.
func Start(ctx context.Context, spec Spec) (*Child, error) {
	c := &Child{log: filepath.Join(spec.Dir, spec.Name+".log"), exited: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer log.Close()
	ctx, c.stop = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, spec.Args[0], spec.Args[1:]...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// The second is for the case that this program is killed; the runtime keeps
	// the threads that start children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	if err := cmd.Start(); err != nil {
		c.stop()
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	c.PID, c.process = cmd.Process.Pid, cmd.Process
	go func() {
		defer close(c.exited)
		_ = cmd.Wait()
		// Children of its own that outlived it are in its group.
		_ = syscall.Kill(-c.PID, syscall.SIGKILL)
	}()
	return c, nil
}

// Exited is closed when the child has ended.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Close ends the child and waits for it.
func (c *Child) Close() {
	c.stop()
	<-c.exited
}

// Signal sends the child a signal, which its own children don't get.
func (c *Child) Signal(s os.Signal) error {
	if err := c.process.Signal(s); err != nil {
		return fmt.Errorf("signal process %d: %w", c.PID, err)
	}
	return nil
}

// Kill ends the child without a warning and waits for it.
func (c *Child) Kill() {
	_ = c.process.Kill() // fails where it has ended already
	c.Close()
}

// Log is the last part of what the child has printed.
func (c *Child) Log() string {
	const most = 2000
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Await calls ready every few milliseconds until it returns nil. It gives up
// when the child ends, the time is over or ctx ends; the error then holds the
// last one of ready and the child's log.
func (c *Child) Await(ctx context.Context, limit time.Duration, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return errors.Join(errors.New("it has ended"), err, errors.New(c.Log()))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err, errors.New(c.Log()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}
