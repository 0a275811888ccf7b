package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// watchInterval is the time between two pictures of `status --watch`.
const watchInterval = time.Second

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show a node's view of the cluster",
		Flags: append(adminFlags(),
			&cli.BoolFlag{Name: "watch", Usage: "show it again every second", DisableDefaultText: true}),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if !c.Bool("watch") {
				return showStatus(c)
			}
			return watchStatus(c)
		},
	}
}

// watchStatus shows the status until the context ends or the node is gone.
func watchStatus(c *cli.Context) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Context = ctx
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		if isTerminal(c.App.Writer) {
			fmt.Fprint(c.App.Writer, "\x1b[H\x1b[2J")
		}
		if err := showStatus(c); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func showStatus(c *cli.Context) error {
	status, raw, err := fetchStatus(c.Context, c.String("admin"))
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if c.Bool("json") {
		return writeRaw(c.App.Writer, raw)
	}
	return writeStatus(c.App.Writer, status)
}
