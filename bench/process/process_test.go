package process

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseStat(t *testing.T) {
	line := "4217 (a (b) c) S 12 4217 4217 0 -1 4194560 1 0 0 0 150 25 7 8 20 0 1 0 100 1 1"
	got, err := parseStat([]byte(line))
	if want := (stat{pid: 4217, parent: 12, cpu: 1750 * time.Millisecond}); err != nil || got != want {
		t.Errorf("parseStat = %+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "1 (x", "1 (x) S 1", "y (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("parseStat(%q) found no fault", bad)
		}
	}
}

func TestKilobytes(t *testing.T) {
	text := []byte("Name:\tx\nVmHWM:\t     200 kB\nVmRSS:\t     100 kB\n")
	if r, h, n := kilobytes(text, "VmRSS:"), kilobytes(text, "VmHWM:"), kilobytes(text, "VmSwap:"); r != 100<<10 || h != 200<<10 || n != 0 {
		t.Errorf("got %d, %d, %d", r, h, n)
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	u, err := UsageOf(os.Getpid())
	if err != nil || u.RSS == 0 || u.HighWater < u.RSS {
		t.Errorf("usage %+v, %v", u, err)
	}
	if _, err := UsageOf(1 << 30); err == nil {
		t.Error("a process that can't exist has a usage")
	}
}

func TestChildAndItsChildrenEnd(t *testing.T) {
	c, err := Start(t.Context(), Spec{Name: "sh", Dir: t.TempDir(), Args: []string{"sh", "-c", "sleep 100 & echo up; wait"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Await(t.Context(), 5*time.Second, func() error {
		if !strings.Contains(c.Log(), "up") {
			return errors.New("not up")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	family, err := tree(c.PID)
	if err != nil || len(family) != 2 {
		t.Fatalf("family %v, %v, want two", family, err)
	}
	c.Close()
	for range 100 {
		if _, err := tree(family[1].pid); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the child's child outlived it")
}

func TestStoppedChildIsKilled(t *testing.T) {
	c, err := Start(t.Context(), Spec{Name: "sh", Dir: t.TempDir(), Args: []string{"sleep", "100"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Signal(syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	c.Kill()
	if err := c.Signal(syscall.SIGCONT); err == nil {
		t.Error("a process that has ended was signalled")
	}
}

func TestFreePortsAreFreeAndDiffer(t *testing.T) {
	ports, err := FreePorts(20)
	if err != nil || len(ports) != 20 {
		t.Fatal(ports, err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p >= pastPorts {
			t.Errorf("port %d of %v", p, ports)
		}
		seen[p] = true
	}
	for _, p := range ports[:2] {
		release, err := hold(p)
		if err != nil {
			t.Error(err)
			continue
		}
		release()
	}
}

func TestAwaitTellsWhyAChildEnded(t *testing.T) {
	c, err := Start(t.Context(), Spec{Name: "sh", Dir: t.TempDir(), Args: []string{"sh", "-c", "echo no such option; exit 2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Await(t.Context(), 5*time.Second, func() error { return errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("error %v", err)
	}
}
