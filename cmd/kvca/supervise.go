package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// supervised is an engine that the agent has started and keeps running.
type supervised struct {
	argv   []string
	env    []string
	events string // where its events are, as --events takes it
	grace  time.Duration
	log    *slog.Logger
	out    io.Writer
	errs   io.Writer
}

// Pauses before an engine that has ended is started again. One that has run for
// steadyRun begins with the first.
const (
	firstRestart = time.Second
	lastRestart  = 30 * time.Second
	steadyRun    = time.Minute
)

// supervise makes ready to start the engine: with free ports of the loopback address
// for its events, and with the flags that they need. vLLM connects to an endpoint
// without a wildcard, so the agent listens there; the replay socket is always bound.
func supervise(s *agentSettings, log *slog.Logger, out, errs io.Writer) (*supervised, error) {
	events, err := freePort()
	if err != nil {
		return nil, err
	}
	replay, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &supervised{
		events: "bind:tcp://" + events + ",tcp://" + replay, grace: s.grace,
		log: log.With("engine", filepath.Base(s.command[0])), out: out, errs: errs,
	}
	p.argv, p.env = withEvents(s.command, "tcp://"+events, "tcp://"+replay)
	if _, err := exec.LookPath(p.argv[0]); err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	return p, nil
}

// withEvents adds what an engine needs to publish its events, where it is not given:
// both engines have a flag of the same name, and what else vLLM needs is its own.
func withEvents(command []string, endpoint, replay string) (argv, env []string) {
	argv, env = slices.Clone(command), os.Environ()
	config := map[string]any{"publisher": "zmq", "endpoint": endpoint, "replay_endpoint": replay}
	sglang := slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "sglang") })
	if !sglang {
		config["enable_kv_cache_events"] = true
		argv = withFlag(argv, "--enable-prefix-caching", "")
		argv = withFlag(argv, "--prefix-caching-hash-algo", "sha256_cbor")
		if os.Getenv("PYTHONHASHSEED") == "" {
			env = append(env, "PYTHONHASHSEED=0")
		}
	}
	text, _ := json.Marshal(config) // strings and a bool: can't fail
	return withFlag(argv, "--kv-events-config", string(text)), env
}

// withFlag adds a flag unless the command has it.
func withFlag(argv []string, name, value string) []string {
	if slices.ContainsFunc(argv, func(word string) bool { return word == name || strings.HasPrefix(word, name+"=") }) {
		return argv
	}
	if argv = append(argv, name); value != "" {
		argv = append(argv, value)
	}
	return argv
}

// run keeps the engine running until ctx ends, and then ends it.
func (p *supervised) run(ctx context.Context) error {
	for wait := firstRestart; ; wait = min(2*wait, lastRestart) {
		began := time.Now()
		err := p.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) >= steadyRun {
			wait = firstRestart
		}
		p.log.Error("the engine has ended: it is started again", "after", time.Since(began).Round(time.Second), "error", err, "in", wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait/2 + rand.N(wait/2)):
		}
	}
}

// once runs the engine once. When ctx ends it is asked to end, and killed with its
// children after the time of grace.
func (p *supervised) once(ctx context.Context) error {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.out, p.errs
	cmd.WaitDelay = time.Second // children that keep the output open
	ownGroup(cmd)
	ended, err := start(cmd)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	p.log.Info("engine started", "pid", cmd.Process.Pid, "command", strings.Join(p.argv, " "))
	select {
	case err := <-ended:
		killGroup(cmd) // what it has left behind would hold its port
		return err
	case <-ctx.Done():
	}
	endGroup(cmd)
	select {
	case err := <-ended:
		killGroup(cmd)
		return err
	case <-time.After(p.grace):
		p.log.Warn("the engine does not end: it is killed", "grace", p.grace)
		killGroup(cmd)
		return <-ended
	}
}

// start starts a command. It is a thread whose end tells the command that the agent has
// ended (see ownGroup), so one stays with it until it ends by itself.
func start(cmd *exec.Cmd) (ended <-chan error, err error) {
	started, end := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			end <- cmd.Wait()
		}
	}()
	return end, <-started
}
