package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// settled are variables of Go that would change a program if they were left as
// they are found.
var settled = []string{
	"CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off", "GOWORK=off",
}

// command prepares a program that runs at the repository's root.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = r.root
	c.Env = append(append(os.Environ(), settled...), env...)
	c.Stderr = os.Stderr
	return c
}

// program is where the program for a platform is while the rest is made.
func (r *release) program(p platform) string {
	return filepath.Join(r.work, p.os+"_"+p.arch, "kvca")
}

// build makes the program for one platform. What the version control says is left
// out: an archive of the source has none, and has to give the same.
func (r *release) build(ctx context.Context, p platform) error {
	return r.goBuild(ctx, r.program(p), "GOOS="+p.os, "GOARCH="+p.arch)
}

func (r *release) goBuild(ctx context.Context, out string, env ...string) error {
	return r.command(ctx, env, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X main.version="+r.version, "-o", out, "./cmd/kvca").Run()
}

// shells are what completions are made for, and the files that shells look for.
var shells = []struct{ name, file string }{
	{"bash", "kvca.bash"}, {"zsh", "_kvca"}, {"fish", "kvca.fish"},
}

// completions asks the program itself, built for the machine that this runs on.
func (r *release) completions(ctx context.Context) error {
	own := filepath.Join(r.work, "kvca")
	if err := r.goBuild(ctx, own); err != nil {
		return err
	}
	for _, s := range shells {
		script, err := r.command(ctx, nil, own, "completion", s.name).Output()
		if err != nil {
			return fmt.Errorf("for %s: %w", s.name, err)
		}
		if err := os.WriteFile(filepath.Join(r.work, s.file), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// lines are the lines that a command writes.
func lines(c *exec.Cmd) ([]string, error) {
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return strings.Split(string(bytes.TrimSpace(out)), "\n"), nil
}
