package feed

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kvca/state/kvindex"
)

// Sink takes what a source holds. One goroutine calls it.
type Sink interface {
	Store(*kvindex.Stored) error
	Remove(hashes []uint64, t kvindex.Tier) (unknown int)
	Reset()
	SetLive(bool)
}

// Config configures a Feed.
type Config struct {
	// Endpoint is the engine's event socket, tcp://host:port or ipc:///path.
	Endpoint string

	// Bind says that the engine connects and we listen at Endpoint. vLLM connects
	// where its own endpoint has neither * nor ::.
	Bind bool

	// Replay is the engine's replay socket, which it always binds. Default: none.
	// Without one each lost batch, and each start of ours after the engine's,
	// leaves blocks unknown until the engine stores them anew.
	Replay string

	// Topic is the prefix of the topics to listen to. Default: all.
	Topic string

	// Rank is the data-parallel rank, for the log.
	Rank int

	// Sink takes what the engine holds.
	Sink Sink

	// DownAfter is how long the event socket may be down before what is known is
	// forgotten. Default 5 s. Shorter and a connection that blinks costs the
	// knowledge; longer and a dead engine's blocks draw requests.
	DownAfter time.Duration

	// SilentAfter is how long requests may flow (Expect) without an event before
	// Status.Silent says so. Default 30 s.
	SilentAfter time.Duration

	// MaxQueue bounds the bytes of live batches that wait for the worker, and
	// those of a replay. Default 16 MiB each. Beyond, live batches are dropped and
	// asked for again.
	MaxQueue int

	// MaxPending bounds the bytes of live batches that wait for a replay. Default
	// 16 MiB. Beyond, they are dropped and asked for again.
	MaxPending int

	// Logger gets one line for each reset and each new problem. Default: none.
	Logger *slog.Logger

	// Now is the time since any fixed moment. Default: since New.
	Now func() time.Duration

	stallAfter time.Duration // of a replay without progress; tests shorten it
}

const defaultMaxBytes = 16 << 20

func (c *Config) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.DownAfter, downAfter)
	def(&c.SilentAfter, silentAfter)
	def(&c.stallAfter, stallAfter)
	if c.MaxQueue == 0 {
		c.MaxQueue = defaultMaxBytes
	}
	if c.MaxPending == 0 {
		c.MaxPending = defaultMaxBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		begin := time.Now()
		c.Now = func() time.Duration { return time.Since(begin) }
	}
}

func (c *Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := checkEndpoint(c.Endpoint, c.Bind); err != nil {
		fault("events: %w", err)
	}
	if c.Replay != "" {
		if err := checkEndpoint(c.Replay, false); err != nil {
			fault("replay: %w", err)
		}
	}
	if c.Sink == nil {
		fault("sink: none given")
	}
	if c.DownAfter < 0 {
		fault("down after: %s, expected a positive duration", c.DownAfter)
	}
	if c.SilentAfter < 0 {
		fault("silent after: %s, expected a positive duration", c.SilentAfter)
	}
	if c.MaxQueue < 0 || c.MaxPending < 0 {
		fault("max queue and max pending: %d and %d bytes, expected positive numbers", c.MaxQueue, c.MaxPending)
	}
	return errors.Join(faults...)
}
