package main

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

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

func showStatus(c *cli.Context) error {
	status, raw, err := fetchStatus(c.Context, adminOf(c))
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if c.Bool("json") {
		return writeRaw(c.App.Writer, raw)
	}
	return writeStatus(c.App.Writer, status)
}
