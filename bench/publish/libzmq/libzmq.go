// Package libzmq runs small Python scripts on the real library, for tests that ask
// whether our side of the wire is understood. Only tests import it.
//
// A script talks with its test in lines: what it prints is read with Line, what it
// reads from its standard input is sent with Say. It is killed with the test.
package libzmq

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a script may take for one line.
const patience = 30 * time.Second

// pythons are tried in turn: a distribution's package for zmq belongs to its own
// interpreter, which need not be the first one found.
var pythons = []string{"python3", "/usr/bin/python3"}

var find = sync.OnceValues(func() (string, error) {
	var last error
	for _, python := range pythons {
		out, err := exec.Command(python, "-c", "import zmq").CombinedOutput()
		if err == nil {
			return python, nil
		}
		last = fmt.Errorf("%s -c 'import zmq': %w: %.300s", python, err, out)
	}
	return "", last
})

// Script is a running script.
type Script struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// Start runs a script with arguments; the test is skipped where Python has no zmq.
func Start(t testing.TB, script string, args ...string) *Script {
	t.Helper()
	python, err := find()
	if err != nil {
		t.Skipf("no libzmq to test against (apt-get install python3-zmq): %v", err)
	}
	s := &Script{t: t, lines: make(chan string, 1024)}
	s.cmd = exec.Command(python, append([]string{"-u", "-c", script}, args...)...)
	s.cmd.Stderr = os.Stderr
	in, inErr := s.cmd.StdinPipe()
	out, outErr := s.cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatalf("pipes of a script: %v, %v", inErr, outErr)
	}
	s.in = in
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start a script: %v", err)
	}
	go s.read(out)
	t.Cleanup(s.Stop)
	return s
}

// read passes lines on; beyond 1,024 that nobody reads the script waits.
func (s *Script) read(out io.Reader) {
	defer close(s.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		s.lines <- lines.Text()
	}
}

// Line is the script's next line.
func (s *Script) Line() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			s.t.Fatal("the script ended: want one more line")
		}
		return line
	case <-time.After(patience):
		s.t.Fatalf("no line of the script within %v", patience)
	}
	return ""
}

// Say sends the script a line.
func (s *Script) Say(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatalf("say %q to the script: %v", line, err)
	}
}

// Pause stops the script's process as it stands, until Resume.
func (s *Script) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused script go on.
func (s *Script) Resume() { s.signal(syscall.SIGCONT) }

func (s *Script) signal(which os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(which); err != nil {
		s.t.Fatalf("send the script %v: %v", which, err)
	}
}

// Stop kills the script and waits for it. It may be called again.
func (s *Script) Stop() {
	_ = s.cmd.Process.Kill()
	for range s.lines { // until read has ended
	}
	_ = s.cmd.Wait()
}
