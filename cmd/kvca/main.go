// Command kvca is the gateway and the tools around it: one small file per
// subcommand.
//
// Settings go one way: option.go and options.go hold the one table of what can
// be set, sources.go collects what was given (flag, environment, file, default),
// resolve.go makes settings of it, and node.go assembles a node from those.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
)

// subcommands are what kvca can do, in the order that help lists them.
var subcommands = []func() *cli.Command{
	serveCommand,
	demoCommand,
	agentCommand,
	chainCommand,
	explainCommand,
	statusCommand,
	simulateCommand,
	configCommand,
	keyCommand,
	completionCommand,
	versionCommand,
}

func main() {
	err := newApp(os.Stdin, os.Stdout, os.Stderr).RunContext(context.Background(), os.Args)
	os.Exit(report(os.Stderr, err))
}

// newApp makes the program, reading from and writing to the given streams.
func newApp(in io.Reader, out, errs io.Writer) *cli.App {
	app := &cli.App{
		Name:                 "kvca",
		Usage:                "route LLM requests to the server that holds their KV cache",
		Version:              buildInfo().Version,
		HideVersion:          true, // the flag below says as much as the subcommand
		Reader:               in,
		Writer:               out,
		ErrWriter:            errs,
		EnableBashCompletion: true,
		Suggest:              true,
		// main reports errors, so that all of them look the same.
		ExitErrHandler: func(*cli.Context, error) {},
		OnUsageError: func(c *cli.Context, err error, _ bool) error {
			return fmt.Errorf("%w (see %s --help)", err, c.App.HelpName)
		},
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "version", Usage: "say what this program was built from", DisableDefaultText: true}},
		Action: withoutCommand,
	}
	for _, command := range subcommands {
		app.Commands = append(app.Commands, withUsageErrors(command()))
	}
	return app
}

// withoutCommand is what the program does where no subcommand is named, or none that
// there is.
func withoutCommand(c *cli.Context) error {
	switch {
	case c.Args().Present():
		return fmt.Errorf("there is no command %q. %s (see %s --help)", c.Args().First(), cli.SuggestCommand(c.App.Commands, c.Args().First()), c.App.HelpName)
	case c.Bool("version"):
		return printVersion(c)
	}
	return cli.ShowAppHelp(c)
}

// withUsageErrors makes a command answer a flag that it can't take with one line,
// not with the whole of its help.
func withUsageErrors(c *cli.Command) *cli.Command {
	c.OnUsageError = usageError
	for _, sub := range c.Subcommands {
		withUsageErrors(sub)
	}
	return c
}

func usageError(c *cli.Context, err error, _ bool) error {
	hint := ""
	if _, name, ok := strings.Cut(err.Error(), "not defined: "); ok {
		if near := cli.SuggestFlag(c.Command.Flags, name, false); near != "" {
			hint = ": want " + near + "?"
		}
	}
	return fmt.Errorf("%w%s (see %s --help)", err, hint, c.Command.HelpName)
}

// report writes an error and returns the exit code: 0 for none, 1 otherwise.
// Faults of a configuration are written one a line.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var list faults
	if !errors.As(err, &list) {
		fmt.Fprintln(w, "kvca:", err)
		return 1
	}
	for _, f := range list {
		fmt.Fprintln(w, "kvca:", f)
	}
	return 1
}

// noArguments refuses arguments where a subcommand takes none: a forgotten
// dash would otherwise leave a setting at its default.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return fmt.Errorf("%s: unexpected argument %q: settings begin with --", c.Command.HelpName, c.Args().First())
	}
	return nil
}
