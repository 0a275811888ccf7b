package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that are left. It looks longer than goleak does by
// itself, since memberlist does not wait for a probe that is under way.
func TestMain(m *testing.M) {
	code := m.Run()
	left := goleak.Find()
	for end := time.Now().Add(patience); left != nil && time.Now().Before(end); {
		left = goleak.Find()
	}
	if left != nil {
		fmt.Fprintln(os.Stderr, left)
		code = 1
	}
	os.Exit(code)
}

// kvca runs the program with its arguments and its standard input.
func kvca(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	err := newApp(strings.NewReader(in), &o, &e).RunContext(context.Background(), append([]string{"kvca"}, args...))
	code = report(&e, err)
	return o.String(), e.String(), code
}

// writeFile makes a file for one test and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVersionSaysWhatItWasBuiltFrom(t *testing.T) {
	for _, way := range []string{"version", "--version"} {
		out, _, code := kvca(t, "", way)
		if code != 0 || !strings.HasPrefix(out, "kvca ") || !strings.Contains(out, "commit ") || !strings.Contains(out, "go1.") {
			t.Errorf("%s: code %d, output %q", way, code, out)
		}
	}
}

func TestUnknownFlagsAndCommandsAreOneLineWithTheOneThatIsMeant(t *testing.T) {
	for want, args := range map[string][]string{"--listen": {"serve", "--lisen", ":1"}, "kvca --help": {"--verson"}, "status": {"statu"}} {
		out, errs, code := kvca(t, "", args...)
		if code != 1 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, output %q, errors %q", args, code, out, errs)
		}
	}
}

func TestHelpIsWhatNoCommandGives(t *testing.T) {
	if out, errs, code := kvca(t, ""); code != 0 || errs != "" || !strings.Contains(out, "COMMANDS") {
		t.Errorf("code %d, output %q, errors %q", code, out, errs)
	}
}

func TestArgumentsWhereNoneBelongAreRefused(t *testing.T) {
	for _, command := range []string{"serve", "chain", "status", "version"} {
		if _, errs, code := kvca(t, "", command, "listen=:1"); code != 1 || !strings.Contains(errs, `"listen=:1"`) {
			t.Errorf("%s: code %d, errors %q", command, code, errs)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, errs, code := kvca(t, "", "completion", shell); code != 0 || !strings.Contains(out, "kvca") {
			t.Errorf("%s: code %d, errors %q, output %q", shell, code, errs, out)
		}
	}
	if _, errs, code := kvca(t, "", "completion", "csh"); code != 1 || !strings.Contains(errs, "bash, zsh or fish") {
		t.Errorf("code %d, errors %q", code, errs)
	}
}

func TestCompletionOffersFlags(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"kvca", "serve", "--dr", "--generate-bash-completion"}
	out, _, _ := kvca(t, "", os.Args[1:]...)
	if out != "--drain-delay\n--drain-timeout\n" {
		t.Errorf("got %q", out)
	}
}
