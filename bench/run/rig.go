package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kvca/bench/fake"
	"kvca/bench/gateway"
	"kvca/bench/load"
	"kvca/bench/process"
	"kvca/bench/report"
)

const (
	model       = "fake"
	connections = 32
	// requestTime bounds one request of a load.
	requestTime = 30 * time.Second
)

// settings are the flags that the subcommands have in common.
type settings struct {
	flags     *flag.FlagSet
	command   string
	kvca      string
	kvcaFlags string
	gateways  string
	bench     string
	out       string
	seed      uint64
}

func newSettings(name, gateways string) *settings {
	s := &settings{flags: flag.NewFlagSet(name, flag.ContinueOnError)}
	s.flags.StringVar(&s.kvca, "kvca", "bin/kvca", "path of kvca")
	s.flags.StringVar(&s.kvcaFlags, "kvca-flags", "", "further flags of kvca serve, with spaces between them")
	if gateways != "" {
		s.flags.StringVar(&s.gateways, "gateways", gateways, "gateways to measure, with commas between them; all for all")
	}
	s.flags.StringVar(&s.bench, "dir", "bench", "folder that has the results and the environments of peers")
	s.flags.StringVar(&s.out, "out", "", "file below results that the report is also written to")
	s.flags.Uint64Var(&s.seed, "seed", 1, "seed of texts and moments")
	return s
}

func (s *settings) parse(args []string) error {
	s.command = strings.Join(append([]string{"go run ./bench/run", s.flags.Name()}, args...), " ")
	return s.flags.Parse(args)
}

func (s *settings) report() (*report.Writer, error) {
	return report.New(os.Stdout, filepath.Join(s.bench, "results"), s.out, s.command)
}

// rig is fake backends, and what gateways are started with. close ends all of it.
type rig struct {
	*report.Writer
	env   gateway.Env
	seed  uint64
	fakes *process.Child
}

// newRig starts the backends that cfg describes and begins the report.
func newRig(ctx context.Context, s *settings, cfg fake.Config) (*rig, error) {
	r, err := newQuietRig(ctx, s, cfg)
	if err != nil {
		return nil, err
	}
	if r.Writer, err = s.report(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// newQuietRig starts the backends alone, for a caller with a report of its own.
func newQuietRig(ctx context.Context, s *settings, cfg fake.Config) (*rig, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "kvca-bench-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for logs: %w", err)
	}
	r := &rig{seed: s.seed, env: gateway.Env{
		Kvca: absolute(s.kvca), Self: self, Venvs: absolute(filepath.Join(s.bench, ".venv")), Dir: dir,
		KvcaFlags: strings.Fields(s.kvcaFlags),
	}}
	if err := r.startFakes(ctx, cfg); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *rig) startFakes(ctx context.Context, cfg fake.Config) error {
	var err error
	r.fakes, err = process.Start(ctx, process.Spec{Name: "fake", Dir: r.env.Dir, Args: []string{
		r.env.Self, "fake", "-host", cfg.Host, "-backends", strconv.Itoa(cfg.Backends), "-model", cfg.Model, "-delay", cfg.Delay.String(), "-spread", cfg.Spread.String(),
		"-chunks", strconv.Itoa(cfg.Chunks), "-chunk-delay", cfg.ChunkDelay.String(),
	}})
	if err != nil {
		return err
	}
	err = r.fakes.Await(ctx, 10*time.Second, func() error {
		r.env.Backends = strings.Fields(r.fakes.Log())
		if len(r.env.Backends) < cfg.Backends {
			return errors.New("not all backends are up")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("start fake backends: %w", err)
	}
	return nil
}

// start starts a gateway; its error tells where one is not installed.
func (r *rig) start(ctx context.Context, name string) (*gateway.Running, error) {
	return gateway.Start(ctx, name, &r.env, load.Chat(model, 1<<10, false, 0))
}

func (r *rig) stats(ctx context.Context) (fake.Stats, error) {
	return fake.Fetch(ctx, r.env.Backends[0])
}

// close ends the backends and writes the report.
func (r *rig) close() error {
	if r.fakes != nil {
		r.fakes.Close()
	}
	err := os.RemoveAll(r.env.Dir)
	if r.Writer != nil {
		err = errors.Join(err, r.Close())
	}
	return err
}

// judge prints whether a promise was kept, and returns an error if not.
func (r *rig) judge(kept bool, format string, args ...any) error {
	verdict := "kept"
	if !kept {
		verdict = "BROKEN"
	}
	r.Printf("* %s: %s\n", verdict, fmt.Sprintf(format, args...))
	if !kept {
		return errBroken
	}
	return nil
}

// judgeHere judges what a machine may be too slow for: where the least that was measured
// on it is over what is promised, too, nothing can be said.
func (r *rig) judgeHere(kept, possible bool, format string, args ...any) error {
	if kept || possible {
		return r.judge(kept, format, args...)
	}
	r.Printf("* can't be shown on this machine: %s\n", fmt.Sprintf(format, args...))
	return nil
}

// absolute is the path from the root, since children may change their folder.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func megabytes(bytes int64) string { return strconv.FormatFloat(float64(bytes)/1e6, 'f', 0, 64) }
