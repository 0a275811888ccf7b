package accesslog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Formats, and what Config.Client may say.
const (
	JSON = "json"
	Text = "text"

	ClientFull    = "full"    // the address
	ClientNetwork = "network" // its /24, or /48 of IPv6
	ClientHash    = "hash"    // a keyed hash: the same for the same address
	ClientNone    = "none"
)

// Standard is the path that stands for standard output.
const Standard = "-"

// Config says what is logged and where. Start from DefaultConfig.
type Config struct {
	// Path is the file that is appended to; "-" is standard output.
	Path string
	// Format is "json" or "text". Default "json".
	Format string
	// Ratio is the share of requests without error that get a line, 0 to 1. A line
	// is about 600 bytes: at 1 a busy gateway writes gigabytes a day, at 0 there are
	// only errors and slow requests. Default 1.
	Ratio float64
	// Slow is how long a request takes to be logged always; 0 for none. Too short
	// makes Ratio void, since long answers are usual. Default 0.
	Slow time.Duration
	// Client is what stands for the client's address: "full", "network" (its /24, or
	// /48 of IPv6), "hash" or "none". Default "network".
	Client string
	// Key keys the hashes of "hash": nodes with one key have the same hashes. Without
	// any they differ between nodes and runs.
	Key []byte
	// MaxBytes bounds what waits to be written; as much again may be being written.
	// Too small drops lines whenever the disk pauses. Default 1 MiB.
	MaxBytes int
	// Logger is told where the file can't be written.
	Logger *slog.Logger
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer

	standard io.Writer // in place of standard output, in tests
}

// DefaultConfig is all but the path.
func DefaultConfig() Config {
	return Config{Format: JSON, Ratio: 1, Client: ClientNetwork, MaxBytes: 1 << 20, Logger: slog.Default()}
}

// Validate returns all faults at once.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Path == "" {
		fault("access log: no file is named; %q is standard output", Standard)
	}
	if c.Format != JSON && c.Format != Text {
		fault("access log: format %q is not %s or %s", c.Format, JSON, Text)
	}
	if !(c.Ratio >= 0 && c.Ratio <= 1) {
		fault("access log: ratio %v is not between 0 and 1", c.Ratio)
	}
	if c.Slow < 0 {
		fault("access log: slow %v is below zero", c.Slow)
	}
	switch c.Client {
	case ClientFull, ClientNetwork, ClientHash, ClientNone:
	default:
		fault("access log: client %q is not %s, %s, %s or %s", c.Client, ClientFull, ClientNetwork, ClientHash, ClientNone)
	}
	if c.MaxBytes < 2*maxLine {
		fault("access log: max bytes %d is less than %d, two lines", c.MaxBytes, 2*maxLine)
	}
	return errors.Join(faults...)
}
