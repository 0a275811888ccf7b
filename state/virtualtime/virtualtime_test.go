package virtualtime

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Timers of one bubble that are due at the same moment, run by whoever comes first: on
// two processors the race detector of Go 1.26 crashes here within a second.
func TestTimersOfManyGoroutines(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	Test(t, func(*testing.T) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 1000 {
					takeTwoTimers()
				}
			})
		}
		wg.Wait()
	})
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("GOMAXPROCS is %d after the bubble, was %d", now, before)
	}
}

func takeTwoTimers() {
	a, b := time.NewTimer(time.Millisecond), time.NewTimer(time.Millisecond)
	defer time.AfterFunc(time.Millisecond, func() {}).Stop()
	<-a.C
	<-b.C
}

func TestParallelBubblesShareTheProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Run("all", func(t *testing.T) {
		for range 4 {
			t.Run("one", func(t *testing.T) {
				t.Parallel()
				Test(t, func(t *testing.T) {
					time.Sleep(time.Hour)
					synctest.Wait()
					if n := runtime.GOMAXPROCS(0); Raced && n != 1 {
						t.Errorf("%d processors in a bubble under the race detector", n)
					}
				})
			})
		}
	})
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("GOMAXPROCS is %d after the bubbles, was %d", now, before)
	}
}

// A test that takes synctest.Test itself brings the crash back, once in many runs.
func TestEveryBubbleIsStartedHere(t *testing.T) {
	seen := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		seen += bytes.Count(text, []byte("virtualtime.Test("))
		if bytes.Contains(text, []byte("synctest"+".Test(")) {
			t.Errorf("%s calls synctest.Test: expected virtualtime.Test, which keeps the race detector whole", path)
		}
		return err
	})
	if err != nil || seen < 50 {
		t.Fatalf("%d calls of virtualtime.Test found, expected more than 50: %v", seen, err)
	}
}
