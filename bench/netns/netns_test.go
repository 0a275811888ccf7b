package netns

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPartitionCutsBetweenPartsOnly(t *testing.T) {
	w := newWire([]string{"a", "b", "c", "d"}, Faults{})
	w.Partition([]string{"a", "b"})
	for _, c := range []struct {
		from, to int
		passes   bool
	}{{0, 1, true}, {0, 2, false}, {2, 1, false}, {2, 3, true}} {
		if w.passes(c.from, c.to) != c.passes {
			t.Errorf("from %d to %d, want %v", c.from, c.to, c.passes)
		}
	}
	w.Heal()
	if !w.passes(0, 2) || w.Counts() != (Counts{Cut: 2}) {
		t.Errorf("a healed wire is cut, or has counted %+v", w.Counts())
	}
}

func TestLossIsOfTheShareAskedFor(t *testing.T) {
	w := newWire([]string{"a", "b"}, Faults{Loss: 0.25})
	for range 20_000 {
		w.passes(0, 1)
	}
	if n := w.Counts().Lost; n < 4500 || n > 5500 {
		t.Errorf("%d of 20000 lost", n)
	}
}

func TestForeignPacketsAreNotCarried(t *testing.T) {
	w := newWire([]string{"a"}, Faults{})
	for _, data := range [][]byte{nil, make([]byte, 40), append([]byte{0x60}, make([]byte, 39)...), append([]byte{0x45}, make([]byte, 10)...)} {
		if to, ok := w.destination(data); ok {
			t.Errorf("%x is for %d", data, to)
		}
	}
}

// TestNamespacesReachEachOtherOverTheWire needs what New needs.
func TestNamespacesReachEachOtherOverTheWire(t *testing.T) {
	l, err := New(t.Context(), []string{"a", "b"}, Faults{Delay: time.Millisecond})
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	exchange := func() error { return l.exchange(t) }
	if err := exchange(); err != nil {
		t.Fatal(err)
	}
	l.Partition([]string{"a"}, []string{"b"})
	if exchange() == nil {
		t.Error("parts reach each other")
	}
	l.Heal()
	if err := exchange(); err != nil {
		t.Error(err)
	}
	if c := l.Counts(); c.Carried == 0 || c.Cut == 0 {
		t.Errorf("counts %+v", c)
	}
}

// exchange connects from the first namespace to the second, in which nothing
// listens: a refusal has come all the way back.
func (l *Lab) exchange(t *testing.T) error {
	script := "exec 3<>/dev/tcp/" + l.Peers(1) + "/9"
	args := append(l.Enter(0), "timeout", "1", "bash", "-c", script)
	text, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if strings.Contains(string(text), "refused") {
		return nil
	}
	return errors.Join(errors.New(string(text)), err)
}
