package listen

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pollEvery = 2 * time.Second
	// A certificate that has less than that left is warned of, once a day.
	warnBefore = 14 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
)

// TLSConfig configures the TLS of one listener.
type TLSConfig struct {
	// Listener names it in logs and metrics, such as "listen" or "admin".
	Listener string
	// CertFile holds the certificate and its chain, KeyFile its key, both in PEM.
	// They may change at any time, in any order: they are taken once they belong
	// together.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of which one must have signed a client's
	// certificate, without which there is no connection. "" asks for none.
	ClientCAFile string
	// MinVersion is the lowest version spoken: tls.VersionTLS12, the default, or
	// tls.VersionTLS13, which keeps out clients older than about 2018.
	MinVersion uint16
	// Metrics may be nil.
	Metrics *Metrics
}

// Validate returns all faults at once.
func (c *TLSConfig) Validate() error {
	var faults []error
	if (c.CertFile == "") != (c.KeyFile == "") {
		faults = append(faults, fmt.Errorf("certificate %q and key %q: give both, or neither", c.CertFile, c.KeyFile))
	}
	if c.CertFile == "" && c.ClientCAFile != "" {
		faults = append(faults, fmt.Errorf("authority of clients %q: needs a certificate and a key, since clients show theirs over TLS only", c.ClientCAFile))
	}
	if c.MinVersion != 0 && c.MinVersion != tls.VersionTLS12 && c.MinVersion != tls.VersionTLS13 {
		faults = append(faults, fmt.Errorf("least TLS version %s: want 1.2 or 1.3", tls.VersionName(c.MinVersion)))
	}
	return errors.Join(faults...)
}

// TLS is the TLS of a listener, as its files say.
type TLS struct {
	cfg     TLSConfig
	log     *slog.Logger
	current atomic.Pointer[snapshot]

	mu     sync.Mutex // of what follows: Run and Reload look at the same files
	files  files
	fault  string // what was last said to be wrong with them
	warned time.Time
}

// NewTLS reads the files. An expired certificate is an error in the log and no
// more, so that a restart does not turn a warning of clients into an outage.
func NewTLS(cfg TLSConfig, log *slog.Logger) (*TLS, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &TLS{cfg: cfg, log: log.With(slog.String("listener", cfg.Listener))}
	t.files.paths = []string{cfg.CertFile, cfg.KeyFile}
	if cfg.ClientCAFile != "" {
		t.files.paths = append(t.files.paths, cfg.ClientCAFile)
	}
	contents, err := t.files.now()
	if err != nil {
		return nil, openFault(err)
	}
	s, err := newSnapshot(cfg.MinVersion, contents)
	if err != nil {
		return nil, t.describe(err)
	}
	t.warnOfMode()
	t.use(s)
	t.warnOfExpiry(time.Now())
	return t, nil
}

// Config is for tls.NewListener or http.Server. It stays the same; what is in
// force is looked up for each connection.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion: t.cfg.MinVersion,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return t.current.Load().config, nil
		},
	}
}

// Reload reads the files now. After an error, which is the caller's to log, what was
// read before stays in force.
func (t *TLS) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	contents, err := t.files.now()
	if err != nil {
		err = openFault(err)
	} else {
		err = t.take(contents)
	}
	t.cfg.Metrics.reloaded(err)
	if t.fault = ""; err != nil {
		t.fault = err.Error()
	}
	return err
}

func openFault(err error) error { return fmt.Errorf("open certificate: %w", err) }

// Run looks at the files every two seconds, and warns of a certificate that will
// expire, until ctx ends.
func (t *TLS) Run(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.look()
		}
	}
}

func (t *TLS) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() { t.warnOfExpiry(time.Now()) }()
	contents, changed, err := t.files.changed()
	switch {
	case err != nil:
		err = openFault(err)
	case changed:
		err = t.take(contents)
	}
	switch {
	case err != nil && err.Error() != t.fault:
		t.fault = err.Error()
		t.cfg.Metrics.reloaded(err)
		t.log.Error("certificate files are no good, what was read before stays in force", slog.String("error", t.fault))
	case changed && err == nil:
		t.fault = ""
		t.cfg.Metrics.reloaded(nil)
	}
}

// take puts contents in force if they are good: all of them or none. Caller holds mu.
func (t *TLS) take(contents [][]byte) error {
	s, err := newSnapshot(t.cfg.MinVersion, contents)
	if err != nil {
		return t.describe(err)
	}
	if err := s.valid(time.Now()); err != nil {
		t.files.used = [sha256.Size]byte{} // it may become valid: look again
		return t.describe(err)
	}
	t.warned = time.Time{}
	t.use(s)
	return nil
}

func (t *TLS) use(s *snapshot) {
	t.current.Store(s)
	t.cfg.Metrics.expires(t.cfg.Listener, s.expires.Unix())
	t.log.Info("certificate in force", slog.String("file", t.cfg.CertFile), slog.Any("names", s.names),
		slog.String("sha256", s.fingerprint), slog.Time("expires", s.expires))
}

func (t *TLS) describe(err error) error {
	return fmt.Errorf("read certificate %s and key %s of --%s: %w", t.cfg.CertFile, t.cfg.KeyFile, t.cfg.Listener, err)
}

// warnOfExpiry says once a day that the certificate in force must be replaced.
func (t *TLS) warnOfExpiry(now time.Time) {
	s := t.current.Load()
	if now.Before(s.expires.Add(-warnBefore)) && !now.Before(s.begins) || now.Sub(t.warned) < warnEvery {
		return
	}
	t.warned = now
	if err := s.valid(now); err != nil {
		t.log.Error("clients will refuse the certificate", slog.String("error", err.Error()), slog.String("sha256", s.fingerprint))
		return
	}
	t.log.Warn("certificate expires soon: replace its files, they are read again", slog.Time("expires", s.expires),
		slog.String("file", t.cfg.CertFile), slog.String("sha256", s.fingerprint))
}

func (t *TLS) warnOfMode() {
	if info, err := os.Stat(t.cfg.KeyFile); err == nil && info.Mode().Perm()&0o007 != 0 {
		t.log.Warn("key can be read by anyone on this host", slog.String("file", t.cfg.KeyFile), slog.String("mode", info.Mode().Perm().String()))
	}
}
