package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"kvca/bench/nodes"
	"kvca/bench/process"
)

// Level is what a node uses.
type Level struct {
	RSS                     int64
	Goroutines, Descriptors int
}

// LevelOf looks at a node. What it asks costs the node some of both for a moment.
func LevelOf(ctx context.Context, n *nodes.Node) (l Level, err error) {
	use, err := process.UsageOf(n.PID)
	if err != nil {
		return l, fmt.Errorf("look at %s: %w", n.Place.Name, err)
	}
	l.RSS = use.RSS
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.PID))
	if err != nil {
		return l, fmt.Errorf("look at %s: %w", n.Place.Name, err)
	}
	l.Descriptors = len(open)
	l.Goroutines, _, err = n.Goroutines(ctx)
	return l, err
}

// Levels looks at several nodes.
func Levels(ctx context.Context, list []*nodes.Node) ([]Level, error) {
	all := make([]Level, len(list))
	for i, n := range list {
		var err error
		if all[i], err = LevelOf(ctx, n); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// few is what a node may use more than at its start: a probe under way, a scrape.
const few = 12

// quietTime is how long connections may take to go that lie idle.
const quietTime = 30 * time.Second

// Settle waits until each node uses no more goroutines and descriptors than it did,
// and returns what it uses then.
func Settle(ctx context.Context, list []*nodes.Node, before []Level) (after []Level, err error) {
	_, err = nodes.Await(ctx, quietTime, func(ctx context.Context) error {
		if after, err = Levels(ctx, list); err != nil {
			return err
		}
		var faults []error
		for i, l := range after {
			if l.Goroutines > before[i].Goroutines+few || l.Descriptors > before[i].Descriptors+few {
				faults = append(faults, fmt.Errorf("%s has %d goroutines and %d descriptors, had %d and %d",
					list[i].Place.Name, l.Goroutines, l.Descriptors, before[i].Goroutines, before[i].Descriptors))
			}
		}
		return errors.Join(faults...)
	})
	return after, err
}

// crash is what the Go runtime and the gateway write where something is wrong inside.
var crash = regexp.MustCompile(`(?m)^(panic: |fatal error: |goroutine \d+ \[|WARNING: DATA RACE|unexpected fault).*|.*(?:msg=panic|internal_error|"panic).*`)

// Crashes are lines of logs in a folder that tell of a fault of the program's own.
func Crashes(dir string) ([]string, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "node-*.log"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		for _, line := range crash.FindAllString(string(text), 10) {
			found = append(found, filepath.Base(path)+": "+line)
		}
	}
	return found, nil
}
