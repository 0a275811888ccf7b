package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version is set by the linker; without it the module's version counts.
var version string

// build is what this program was made from.
type build struct{ Version, Commit, Go string }

func buildInfo() build {
	b := build{Version: version, Commit: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				b.Commit = s.Value + b.dirty(info)
			}
		}
		if v := info.Main.Version; b.Version == "" && v != "" && v != "(devel)" {
			b.Version = v
		}
	}
	if b.Version == "" {
		b.Version = "dev"
	}
	return b
}

// dirty marks a build of a tree with changes that are in no commit.
func (build) dirty(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.modified" && s.Value == "true" {
			return "-dirty"
		}
	}
	return ""
}

func versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "say what this program was built from",
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return printVersion(c)
		},
	}
}

func printVersion(c *cli.Context) error {
	b := buildInfo()
	_, err := fmt.Fprintf(c.App.Writer, "kvca %s\ncommit %s\n%s %s/%s\n", b.Version, b.Commit, b.Go, runtime.GOOS, runtime.GOARCH)
	return err
}
