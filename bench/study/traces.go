package study

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kvca/bench/trace"
)

// Files are the recorded traces: of a workload, its path and a digest of what is
// in there.
type Files map[string]file

type file struct{ path, digest string }

// FilesIn looks for the recorded traces in a folder; a missing one is an error.
func FilesIn(dir string) (Files, error) {
	return filesIn(dir, func(w *workload) string { return w.recorded })
}

// Slices are the parts of recorded traces that the repository holds; root is its
// folder bench.
func Slices(root string) (Files, error) {
	return filesIn(filepath.Join(root, "trace", "testdata"), func(w *workload) string { return w.slice })
}

func filesIn(dir string, name func(*workload) string) (Files, error) {
	files := Files{}
	for key, w := range workloads {
		if w.recorded == "" {
			continue
		}
		path := filepath.Join(dir, name(&w))
		digest, err := digestOf(path)
		if err != nil {
			return nil, err
		}
		files[key] = file{path, digest}
	}
	return files, nil
}

func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("look for a trace: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read trace %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

func (f Files) id(workload string) string { return f[workload].digest }

// traces builds each workload once per seed and limit, and lets go of it when the
// last run that needs it is over. Runs share what it gives, and only read.
type traces struct {
	files Files
	mu    sync.Mutex
	built map[basis]*built
}

// basis is what decides a trace but its rate.
type basis struct {
	workload string
	limit    int
	seed     uint64
}

type built struct {
	once  sync.Once
	users int // runs that are still to come
	trace *trace.Trace
	err   error
}

func (j job) basis() basis { return basis{j.Source.Workload, j.Source.Limit, j.seed} }

func newTraces(files Files, jobs []job) *traces {
	t := &traces{files: files, built: map[basis]*built{}}
	for _, j := range jobs {
		b := t.built[j.basis()]
		if b == nil {
			b = &built{}
			t.built[j.basis()] = b
		}
		b.users++
	}
	return t
}

// of is the job's trace at its rate. The caller calls done when it is through
// with it.
func (t *traces) of(j job) (*trace.Trace, error) {
	t.mu.Lock()
	b := t.built[j.basis()]
	t.mu.Unlock()
	b.once.Do(func() {
		w, ok := workloads[j.Source.Workload]
		if !ok {
			b.err = fmt.Errorf("no workload is called %q", j.Source.Workload)
			return
		}
		b.trace, b.err = w.open(t.files[j.Source.Workload].path, j.seed, j.Source.Limit)
	})
	if b.err != nil {
		return nil, b.err
	}
	return paced(b.trace, j.Source.Rate), nil
}

func (t *traces) done(j job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.built[j.basis()]
	if b.users--; b.users == 0 {
		delete(t.built, j.basis())
	}
}

// paced is the trace at a rate. Requests are shared with base; clients' think
// times stay as they are, since it is more clients that press harder, not faster
// ones.
func paced(base *trace.Trace, rate float64) *trace.Trace {
	t := *base
	if t.Lanes > 0 {
		t.Lanes = max(int(rate+0.5), 1)
		return &t
	}
	t.Sessions = make([]trace.Session, len(base.Sessions))
	for i, s := range base.Sessions {
		t.Sessions[i] = trace.Session{Start: time.Duration(float64(s.Start) / rate), Requests: s.Requests}
	}
	return &t
}

// first leaves a trace's first sessions, of limit requests at most.
func first(t *trace.Trace, limit int) *trace.Trace {
	if limit <= 0 {
		return t
	}
	requests := 0
	for i, s := range t.Sessions {
		if requests += len(s.Requests); requests > limit {
			t.Sessions = t.Sessions[:i]
			break
		}
	}
	return t
}

// shuffle puts the sessions of a closed loop into another order, which is all
// that chance has to decide about it.
func shuffle(t *trace.Trace, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(t.Sessions), func(i, k int) { t.Sessions[i], t.Sessions[k] = t.Sessions[k], t.Sessions[i] })
}
