//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"
)

// TestSignalDrainsTheProcess runs the subcommand as it is, signal included.
func TestSignalDrainsTheProcess(t *testing.T) {
	t.Setenv("KVCA_LOG_FORMAT", "json")
	logs, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		app := newApp(strings.NewReader(""), io.Discard, w)
		code <- report(io.Discard, app.RunContext(context.Background(), []string{
			"kvca", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--link", "127.0.0.1:0", "--simulate", "2", "--node-name", "here",
		}))
		w.Close()
	}()
	var seen []string
	for lines := bufio.NewScanner(logs); lines.Scan(); {
		var line struct{ Msg, Node string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		seen = append(seen, line.Msg)
		if line.Msg == "serving" {
			if line.Node != "here" {
				t.Errorf("node is %q", line.Node)
			}
			if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
	if all := strings.Join(seen, "\n"); !strings.Contains(all, "limits") || !strings.Contains(all, "drained") {
		t.Errorf("the log is\n%s", all)
	}
}

func TestServeWithFaultsStartsNothing(t *testing.T) {
	_, errs, code := kvca(t, "", "serve", "--listen", "8080", "--ttl", "1")
	if code != 1 || errs != "kvca: --listen: \"8080\" is no address: want HOST:PORT, such as 127.0.0.1:8080, or :8080 for every interface\n"+
		"kvca: --ttl: \"1\" is no duration: want one such as 500ms, 60s or 10m\n" {
		t.Errorf("code %d, errors %q", code, errs)
	}
}

func TestServeWithoutAnyBackendSaysSo(t *testing.T) {
	for _, c := range []struct {
		warned int
		more   []string
	}{{1, nil}, {1, []string{"--gossip", "off"}}, {0, []string{"--simulate", "1"}}, {0, []string{"--join", "127.0.0.1:1"}}} {
		ctx, stop := context.WithCancel(t.Context())
		logs, w := io.Pipe()
		go func() {
			args := append([]string{"kvca", "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gossip", "127.0.0.1:0", "--link", "127.0.0.1:0"}, c.more...)
			w.CloseWithError(newApp(strings.NewReader(""), io.Discard, w).RunContext(ctx, args))
		}()
		found := ""
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			if found += lines.Text() + "\n"; strings.Contains(lines.Text(), "msg=serving") {
				stop()
			}
		}
		stop()
		if got := strings.Count(found, `msg="no backends`); got != c.warned || !strings.Contains(found, "msg=serving") {
			t.Errorf("%v: warned %d times, want %d\n%s", c.more, got, c.warned, found)
		}
	}
}
