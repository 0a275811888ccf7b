package gateway

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Version is what a gateway calls its version, "" where it can't be told.
func Version(ctx context.Context, name string, e *Env) string {
	switch {
	case strings.HasPrefix(name, "kvca"):
		return strings.Join(strings.Fields(firstLine(ctx, e.Kvca, "version"))[1:], " ")
	case name == "plain":
		return runtime.Version()
	case name == "nginx":
		_, version, _ := strings.Cut(firstLine(ctx, "nginx", "-v"), "nginx/")
		return version
	default:
		return packageVersion(e, strings.TrimSuffix(name, "-hash"))
	}
}

// firstLine is what a program says first; there is always a word.
func firstLine(ctx context.Context, program string, args ...string) string {
	text, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	line, _, _ := strings.Cut(string(text), "\n")
	if err != nil || strings.TrimSpace(line) == "" {
		return "unknown"
	}
	return line
}

// packageVersion reads it from the name of the package's metadata, since asking
// the program would mean starting Python.
func packageVersion(e *Env, name string) string {
	stem := strings.ReplaceAll(name, "-", "_") + "-"
	found, err := filepath.Glob(filepath.Join(e.Venvs, name, "lib/python*/site-packages", stem+"*.dist-info"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), stem), ".dist-info")
}
