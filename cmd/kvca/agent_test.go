package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

func post(t *testing.T, url string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("POST %s: %s %s", url, resp.Status, text)
	}
}

// write makes a file of the test's.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// agentOf reads an agent's command line.
func agentOf(t *testing.T, args ...string) (s *agentSettings, err error) {
	t.Helper()
	command := agentCommand()
	command.Action = func(c *cli.Context) error {
		s, _, err = readAgent(c)
		return nil
	}
	app := &cli.App{Commands: []*cli.Command{command}, ErrWriter: io.Discard, Writer: io.Discard, ExitErrHandler: func(*cli.Context, error) {}}
	if runErr := app.Run(append([]string{"kvca", "agent"}, args...)); runErr != nil {
		t.Fatal(runErr)
	}
	return s, err
}

const agentToken = "a-token-of-more-than-16-bytes"

func TestAnAgentTellsTheClusterAndIsForgotten(t *testing.T) {
	agents := write(t, "agents", "host "+agentToken+" sim-0,sim-1\n")
	engines := runMember(t, "engines", nil, map[string][]string{"simulate-events": {"true"}, "gossip": {off}, "link": nil})
	var nodes []*running
	for _, name := range []string{"gw-0", "gw-1"} {
		flags := map[string][]string{"agents-file": {agents}, "simulate": nil}
		for _, e := range engines.engines {
			flags["backend"] = append(flags["backend"], e.id+"="+e.config().URL)
		}
		nodes = append(nodes, runMember(t, name, nodes, flags))
	}
	args := []string{"--name", "host", "--token-file", write(t, "token", agentToken+"\n"), "--node", nodes[0].peers.link}
	for _, e := range engines.engines {
		args = append(args, "--events", e.id+"="+e.config().Events)
	}
	s, err := agentOf(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runAgent(ctx, s, slog.New(slog.DiscardHandler), io.Discard, io.Discard) }()
	body := conversation(4000, false)
	for _, r := range nodes {
		r.eventually(t, "told by the agent", func() bool { return r.live(t) == 2 })
	}
	nodes[0].chat(t, body)
	for _, r := range nodes {
		r.predicts(t, body)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, r := range nodes {
		r.eventually(t, "rid of what the agent told", func() bool { return len(r.status(t).Index.Sources) == 0 })
	}
}

func TestAgentSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"--node: none", "--token-file: none", "--events: none"}},
		{[]string{"--node", "foo"}, []string{`--node: "foo" is no address of a node: want HOST:PORT that its --link is`}},
		{[]string{"--log-level", "loud"}, []string{`--log-level: "loud": want one of debug, info, warn, error`}},
		{[]string{"--grace", "soon", "--ranks", "0"}, []string{`--grace: "soon" is no duration: want`, `--ranks: "0" is out of range: want 1 to`}},
		{[]string{"--backend", "a"}, []string{"want -- and a command"}},
		{[]string{"--", "sleep", "1"}, []string{"--backend"}},
		{[]string{"--events", "a=auto"}, []string{"want a=URL"}},
		{[]string{"--events", "*=auto"}, []string{"in place of *"}},
		{[]string{"--events", "a=tcp://h:1", "--backend", "a", "--", "sleep", "1"}, []string{"leave it out"}},
		{[]string{"--engine", "nonsense", "--max-bytes", "lots"}, []string{"--engine: \"nonsense\": want ID=URL", "--max-bytes: \"lots\" is no size"}},
	} {
		_, err := agentOf(t, c.args...)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q in it", c.args, err, want)
			}
		}
	}
}

func TestEnginesAreStartedWithTheirEvents(t *testing.T) {
	t.Setenv("PYTHONHASHSEED", "")
	argv, env := withEvents([]string{"vllm", "serve", "m", "--enable-prefix-caching"}, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2")
	line := strings.Join(argv, " ")
	if strings.Count(line, "--enable-prefix-caching") != 1 || !strings.Contains(line, "--prefix-caching-hash-algo sha256_cbor") ||
		!strings.Contains(line, `"enable_kv_cache_events":true`) || !strings.Contains(line, `"endpoint":"tcp://127.0.0.1:1"`) || !slices.Contains(env, "PYTHONHASHSEED=0") {
		t.Errorf("vLLM is started as %q", line)
	}
	argv, env = withEvents([]string{"python", "-m", "sglang.launch_server"}, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2")
	if line := strings.Join(argv, " "); strings.Contains(line, "prefix-caching") || !strings.Contains(line, `"publisher":"zmq"`) || slices.Contains(env, "PYTHONHASHSEED=0") {
		t.Errorf("SGLang is started as %q", line)
	}
	argv, _ = withEvents([]string{"vllm", `--kv-events-config={}`}, "tcp://127.0.0.1:1", "tcp://127.0.0.1:2")
	if strings.Count(strings.Join(argv, " "), "--kv-events-config") != 1 {
		t.Errorf("a configuration that was given is given twice: %q", argv)
	}
}

// An engine that ends is started again, and one that is told to end takes its
// children along.
func TestAnEngineIsKeptRunningAndEndedWhole(t *testing.T) {
	dir := t.TempDir()
	script := write(t, "engine.sh", `echo run >> "$1/runs"
if [ "$(wc -l < "$1/runs")" -lt 2 ]; then exit 3; fi
sleep 1000 & echo $! > "$1/child"; wait
`)
	p := &supervised{argv: []string{"sh", script, dir}, env: os.Environ(), grace: 5 * time.Second, log: slog.New(slog.DiscardHandler), out: io.Discard, errs: io.Discard}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	child := filepath.Join(dir, "child")
	waitFor(t, "an engine that is started a second time", func() bool {
		text, err := os.ReadFile(child)
		return err == nil && bytes.HasSuffix(text, []byte("\n"))
	})
	pid, err := os.ReadFile(child)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	proc := filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat")
	waitFor(t, "an engine's child that ends", func() bool {
		stat, err := os.ReadFile(proc)
		return err != nil || bytes.Contains(stat, []byte(") Z "))
	})
}

// waitFor waits until what other processes do has come about.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
