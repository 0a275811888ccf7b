package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"kvca/bench/demo"
	"kvca/bench/engine"
)

// demoSettings are what `kvca demo` can be told.
type demoSettings struct {
	// listen and admin are the addresses of the gateway's first node; the others,
	// and the gateway that it is compared with, have ports of their own.
	listen, admin string
	// anyListen and anyAdmin let an address that is taken be replaced by another
	// port, where nobody asked for it.
	anyListen, anyAdmin bool

	nodes    int
	backends int
	sessions int
	profile  string
	speed    float64
	precise  bool
	duration time.Duration // 0 for no end
	script   demo.Script
	// program is how this one was started, for the commands that are shown.
	program string
}

// Defaults of the demo's size. Engines at the speed of real ones give times to
// the first token that are those of real ones; so many conversations keep eight
// of them busy, and two cores well below their limit.
const (
	demoNodes    = 3
	demoBackends = 8
	demoSessions = 64
	demoSpeed    = 1
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "show a gateway of three nodes at work on simulated backends, beside round-robin",
		Description: "Runs two gateways in this process, each in front of simulated backends of its own, and holds the same conversations\n" +
			"with both. One is a cluster of --nodes nodes with the policy cost, the first of them on --listen, where each turn of\n" +
			"a conversation goes to a random node; the other is a single node with round-robin. The table shows what the\n" +
			"clients of each see. Needs no engine and no GPU. Ctrl-C ends it.\n\n" +
			"With --precise the backends publish KV cache events, as vLLM and SGLang do, and the cluster goes by those. A line\n" +
			"\"precise index\" then says how many blocks it knows, and how many cached tokens it predicted and engines reported.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS` for clients; another port if the default is taken", Value: "127.0.0.1:8080"},
			&cli.StringFlag{Name: "admin", Usage: "`ADDRESS` of the admin API; another port if the default is taken", Value: "127.0.0.1:8081"},
			&cli.IntFlag{Name: "nodes", Usage: "`N` nodes that route as one", Value: demoNodes},
			&cli.IntFlag{Name: "backends", Usage: "`N` simulated backends for each gateway", Value: demoBackends},
			&cli.IntFlag{Name: "sessions", Usage: "`N` conversations at a time with each gateway", Value: demoSessions},
			&cli.StringFlag{Name: "profile", Usage: "`PROFILE` of the backends: 8b, 32b or 70b", Value: "8b"},
			&cli.Float64Flag{Name: "speed", Usage: "the backends are `X` times as fast as real ones", Value: demoSpeed},
			&cli.BoolFlag{Name: "precise", Usage: "let the backends publish what they hold, and the cluster go by that", DisableDefaultText: true},
			&cli.DurationFlag{Name: "duration", Usage: "`DURATION` to end after; 0 for none", DefaultText: "0s"},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of all that is said", Value: 1},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			d := &demoSettings{
				listen: c.String("listen"), anyListen: !c.IsSet("listen"),
				admin: c.String("admin"), anyAdmin: !c.IsSet("admin"),
				nodes: c.Int("nodes"), backends: c.Int("backends"), sessions: c.Int("sessions"), profile: c.String("profile"),
				program: os.Args[0], speed: c.Float64("speed"), precise: c.Bool("precise"), duration: c.Duration("duration"), script: demo.DefaultScript(demoModel, c.Uint64("seed")),
			}
			if err := d.check(); err != nil {
				return err
			}
			return runDemo(c, d)
		},
	}
}

// Bounds of what may be asked for: every session is a connection to each node,
// every backend a server.
const (
	maxDemoNodes    = 16
	maxDemoBackends = 256
	maxDemoSessions = 4096
	maxDemoSpeed    = 200 // beyond it, simulated backends measure the machine
)

// check returns all that is wrong with the settings.
func (d *demoSettings) check() error {
	var wrong faults
	want := func(ok bool, flag, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fault{origin{place: "--" + flag}, flag, fmt.Sprintf(format, args...)})
		}
	}
	_, err := engine.ProfileNamed(d.profile)
	want(d.nodes >= 1 && d.nodes <= maxDemoNodes, "nodes", "%d: want 1 to %d", d.nodes, maxDemoNodes)
	want(d.backends >= 1 && d.backends <= maxDemoBackends, "backends", "%d: want 1 to %d", d.backends, maxDemoBackends)
	want(d.sessions >= 1 && d.sessions <= maxDemoSessions, "sessions", "%d: want 1 to %d", d.sessions, maxDemoSessions)
	want(err == nil, "profile", "%v", err)
	want(d.speed > 0 && d.speed <= maxDemoSpeed, "speed", "%v: want more than 0, at most %d", d.speed, maxDemoSpeed)
	want(d.duration >= 0, "duration", "%v: want 0 or more", d.duration)
	return wrong.err()
}

// runDemo runs the gateways and what is shown of them, until a signal comes, the
// duration is over, or nobody can see it any more.
func runDemo(c *cli.Context, d *demoSettings) error {
	out := c.App.Writer
	screen := demo.NewScreen(out, isTerminal(out))
	logs := c.App.ErrWriter
	if isTerminal(out) {
		logs = screen // or the log would be written into the picture
	}
	ctx, stop := untilSignal(c.Context, slog.New(slog.DiscardHandler), hangup()...)
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	screen.Lost = func(err error) { end(fmt.Errorf("show the table: %w", err)) }
	fleet, err := openFleet(d, logs, screen)
	if err != nil {
		return err
	}
	err = fleet.run(ctx, func(ctx context.Context) { playDemo(ctx, d, fleet, screen) })
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return errors.Join(err, cause)
	}
	return err
}

// hangup is the signal of a terminal that is closed, unless whoever started the
// program wants it to outlive that (nohup).
func hangup() []os.Signal {
	if signal.Ignored(syscall.SIGHUP) {
		return nil
	}
	return []os.Signal{syscall.SIGHUP}
}
