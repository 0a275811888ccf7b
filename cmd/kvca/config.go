package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
)

func configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "work with configuration files",
		Subcommands: []*cli.Command{{
			Name:      "check",
			Usage:     "say everything that is wrong with a configuration file",
			ArgsUsage: "FILE",
			Description: "Files that the configuration names are read too. The environment is not looked at.\n" +
				"The exit code is 0 for a file that `kvca serve` would start with.",
			Action: checkConfig,
		}},
	}
}

func checkConfig(c *cli.Context) error {
	if c.NArg() != 1 {
		return errors.New("config check: want one argument, the file")
	}
	file := c.Args().First()
	s, err := resolve(sources{file: file})
	if err != nil {
		return err
	}
	for _, w := range s.warnings {
		fmt.Fprintln(c.App.ErrWriter, "warning:", w)
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: no faults\n", file)
	return err
}
