package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// supervisesFor names the file that the engine's process id is to be written to, in the
// environment of a test that is run as the agent.
const supervisesFor = "KVCA_TEST_SUPERVISES_FOR"

func TestAnEngineEndsWithAnAgentThatIsKilled(t *testing.T) {
	if file := os.Getenv(supervisesFor); file != "" {
		p := &supervised{argv: []string{"sh", "-c", `echo $$ > "$0"; exec sleep 1000`, file}, env: os.Environ(), grace: time.Second, log: slog.New(slog.DiscardHandler), out: io.Discard, errs: io.Discard}
		t.Fatal(p.run(t.Context()))
	}
	file := filepath.Join(t.TempDir(), "pid")
	agent := exec.Command(os.Args[0], "-test.run=^TestAnEngineEndsWithAnAgentThatIsKilled$")
	agent.Env = append(os.Environ(), supervisesFor+"="+file)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid []byte
	waitFor(t, "an engine that is started", func() bool {
		pid, _ = os.ReadFile(file)
		return bytes.HasSuffix(pid, []byte("\n"))
	})
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // it was killed
	stat := filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat")
	waitFor(t, "an engine that ends", func() bool {
		text, err := os.ReadFile(stat)
		return err != nil || bytes.Contains(text, []byte(") Z "))
	})
}
