package tenant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// pollEvery is how often Run looks at the files.
const pollEvery = 2 * time.Second

// Directory is the keys file: who sends a request. Its methods may be called from
// anywhere.
type Directory struct {
	path     string
	log      *slog.Logger
	now      clock
	metrics  *authMetrics
	snapshot atomic.Pointer[snapshot]

	mu    sync.Mutex // guards reloading, not requests
	files []string   // what was last read, or meant to be
	used  stamp      // of what was last taken or refused
	seen  stamp      // at the last look
}

// Open reads the keys file. Its error joins all that is wrong with it, one error for
// each fault, with the line where it has one.
func Open(path string, log *slog.Logger) (*Directory, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Directory{path: path, log: log, now: time.Now, files: []string{path}, metrics: newAuthMetrics()}
	s, err := d.read()
	if err != nil {
		return nil, err
	}
	d.snapshot.Store(s)
	d.warn(s)
	return d, nil
}

// Register makes the directory's metrics known.
func (d *Directory) Register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	return errors.Join(reg.Register(d.metrics.results), reg.Register(d.metrics.reloads))
}

// Tenants are all tenants, in the order of the file and the anonymous one last.
func (d *Directory) Tenants() []*Tenant { return slices.Clone(d.snapshot.Load().tenants) }

// Run takes changes of the file until ctx ends. A file with faults is logged once and
// changes nothing.
func (d *Directory) Run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !d.changed() {
				continue
			}
			if err := d.Reload(); err != nil {
				d.log.Error("changed keys file is no good, what was read before stays in force", slog.String("error", err.Error()))
			}
		}
	}
}

// changed is whether the files have changed and stand still: at a first look they may
// be half written, and half a keys file can look like a whole one.
func (d *Directory) changed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := stampOf(d.files)
	still := now.same(d.seen)
	d.seen = now
	return still && !now.same(d.used)
}

// Reload reads the file now and takes all of it, or nothing where there is a fault.
// What changed is logged, an error is the caller's to log.
func (d *Directory) Reload() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.read()
	if err != nil {
		d.metrics.reload[reloadFailed].Inc()
		return err
	}
	before := d.snapshot.Swap(s)
	d.metrics.reload[reloadOK].Inc()
	d.logDifference(before, s)
	d.warn(s)
	return nil
}

// read reads the files. The stamp is of a moment before, so that what changes
// meanwhile is read again.
func (d *Directory) read() (*snapshot, error) {
	d.used = stampOf(d.files)
	text, err := readBounded(d.path, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	s, err := parse(d.path, text)
	if !slices.Equal(s.files, d.files) {
		d.files = s.files
		d.used = stampOf(d.files)
	}
	return s, err
}

// warn says what is allowed but hardly meant.
func (d *Directory) warn(s *snapshot) {
	if why := exposed(d.path, s.salted); why != "" {
		d.log.Warn("keys file is open to others", slog.String("file", d.path), slog.String("reason", why))
	}
	var idle []string
	valid := make(map[*Tenant]bool, len(s.tenants))
	for _, k := range s.keys {
		if !k.expired(d.now()) {
			valid[k.tenant] = true
		}
	}
	for _, t := range s.tenants {
		if t != s.anonymous && !valid[t] {
			idle = append(idle, t.Name)
		}
	}
	if len(idle) > 0 {
		d.log.Warn("tenants have no key that is valid", slog.String("tenants", named(idle)))
	}
}

// named lists names for a log, not all where they are many.
func named(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
