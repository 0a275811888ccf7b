package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
)

func serveCommand() *cli.Command {
	flags, given := flagsOf(options())
	return &cli.Command{
		Name:  "serve",
		Usage: "run a gateway node",
		Description: "A setting is taken from its flag, else from its variable, else from the file of --config, else it has its default.\n" +
			"In variables, elements of a list are separated by commas. Keys of the file are the flags' names with _ for -.",
		Flags: append([]cli.Flag{configFlag()}, flags...),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			src := sources{flag: given.of, env: os.LookupEnv, file: configFile(c)}
			s, err := resolve(src)
			if err != nil {
				return err
			}
			s.file, s.again = src.file, func() (*settings, error) { return resolve(src) }
			return serve(c.Context, s, c.App.ErrWriter)
		},
	}
}

func configFlag() cli.Flag {
	return &cli.StringFlag{Name: "config", Usage: "read settings from `FILE`, in YAML [$KVCA_CONFIG]"}
}

func configFile(c *cli.Context) string {
	if c.IsSet("config") {
		return c.String("config")
	}
	return os.Getenv("KVCA_CONFIG")
}

// serve runs a node until ctx ends or a signal comes.
func serve(ctx context.Context, s *settings, logs io.Writer) error {
	level := new(slog.LevelVar)
	level.Set(s.logLevel)
	log := newLogger(logs, s.logFormat, level)
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	for _, w := range s.warnings {
		log.Warn(w)
	}
	if s.hashKey == nil && !isLoopback(s.listen) {
		log.Info("the hash key follows from the cluster's name: clients that know it can find out which prompts others send; set --hash-key-file")
	}
	// A node without peers says the same once it has its address.
	if s.givenNone() && s.learns() && s.cluster.gossip != "" && len(s.cluster.join) == 0 {
		log.Warn("no backends, and no node to learn of any from: give --backend, --discover or --join, or add some by POST /backends of the admin API")
	}
	setLimits(log, s)
	n, err := newNode(s, log)
	if err != nil {
		return err
	}
	n.level = level
	return n.Run(ctx)
}

// isLoopback is whether only this host reaches an address.
func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// newLogger makes a log of the format, text or json.
func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// untilSignal makes a context that ends with the first signal: SIGTERM, SIGINT or
// one of those given. The second ends the process at once: whoever sends it has
// waited long enough.
func untilSignal(ctx context.Context, log *slog.Logger, further ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, append(further, syscall.SIGTERM, os.Interrupt)...)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if !first {
					os.Exit(1)
				}
				log.Info("signal received: draining; another ends the process at once", "signal", s.String())
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-ended
		cancel()
	}
}
