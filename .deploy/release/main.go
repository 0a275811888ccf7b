// Command release makes what is given to others: for each platform an archive and
// a list of what the program is made of, Debian packages, and the checksums of
// all. The same source and the same Go give the same bytes, wherever and whenever
// it is run: times come from the commit, owners and orders are fixed.
//
// make release runs it. It uses two tools beside Go: nfpm for packages and
// cyclonedx-gomod for bills of materials.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// platform is one that there is a program for.
type platform struct {
	os, arch string
	deb      bool // and a Debian package
}

var platforms = []platform{
	{"linux", "amd64", true},
	{"linux", "arm64", true},
	{"darwin", "arm64", false},
}

// release is one run.
type release struct {
	root    string // of the repository
	out     string // where the results go
	work    string // removed at the end
	tools   string // where nfpm and cyclonedx-gomod are
	version string
	date    time.Time // of the commit: the time of all files
}

func main() {
	var r release
	var epoch int64
	flag.StringVar(&r.root, "root", ".", "the repository's root")
	flag.StringVar(&r.out, "out", "bin/release", "folder for the results; earlier ones are removed")
	flag.StringVar(&r.tools, "tools", ".tools", "folder of nfpm and cyclonedx-gomod")
	flag.StringVar(&r.version, "version", "dev", "the version")
	flag.Int64Var(&epoch, "epoch", 0, "time of all files, in seconds since 1970")
	flag.Parse()
	r.date = time.Unix(epoch, 0).UTC()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.run(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run prepares the folders and makes everything.
func (r *release) run(ctx context.Context) (err error) {
	for _, path := range []*string{&r.root, &r.out, &r.tools} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if err := r.clear(); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "kvca-release"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	return r.all(ctx)
}

// clear makes the folder of results, without those of an earlier run. What
// somebody else put there stays.
func (r *release) clear() error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"kvca_*", sumsFile} {
		old, err := filepath.Glob(filepath.Join(r.out, pattern))
		if err != nil {
			return err
		}
		for _, name := range old {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// all makes everything, in order.
func (r *release) all(ctx context.Context) error {
	for _, p := range platforms {
		if err := r.build(ctx, p); err != nil {
			return fmt.Errorf("build for %s/%s: %w", p.os, p.arch, err)
		}
	}
	if err := r.completions(ctx); err != nil {
		return fmt.Errorf("make completions: %w", err)
	}
	if err := r.notice(ctx); err != nil {
		return fmt.Errorf("collect licences: %w", err)
	}
	for _, p := range platforms {
		if err := r.archive(p); err != nil {
			return fmt.Errorf("make archive for %s/%s: %w", p.os, p.arch, err)
		}
		if err := r.bill(ctx, p); err != nil {
			return fmt.Errorf("list materials for %s/%s: %w", p.os, p.arch, err)
		}
		if !p.deb {
			continue
		}
		if err := r.pack(ctx, p); err != nil {
			return fmt.Errorf("make package for %s: %w", p.arch, err)
		}
	}
	return r.sums()
}
