package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// watchInterval is the time between two pictures of `status --watch`.
const watchInterval = time.Second

// watchStatus shows the status until the context ends: on a terminal as one picture
// that is drawn again, else as one block after the other.
func watchStatus(c *cli.Context) error {
	ctx, stop := signal.NotifyContext(c.Context, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Context = ctx
	out, ok := c.App.Writer.(*os.File)
	if _, _, sized := terminalSize(out); !ok || !sized || c.Bool("json") {
		return repeat(ctx, func() error { return showBlock(c) })
	}
	in, _ := c.App.Reader.(*os.File)
	defer readKeys(in, stop)()
	return onScreen(out, func() error {
		return repeat(ctx, func() error { return drawStatus(c, out) })
	})
}

// repeat shows again and again until ctx ends, or showing fails.
func repeat(ctx context.Context, show func() error) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		if err := show(); err != nil && ctx.Err() == nil {
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

// showBlock shows the status and, where the node counts it, its traffic.
func showBlock(c *cli.Context) error {
	if err := showStatus(c); err != nil || c.Bool("json") {
		return err
	}
	lines := []string{""}
	if t := fetchTraffic(c.Context, adminOf(c)); t != nil {
		lines = append(lines, t.lines()...)
	}
	lines = append(lines, time.Now().Format(time.DateTime), "")
	_, err := fmt.Fprintln(c.App.Writer, strings.Join(lines, "\n"))
	return err
}

// drawStatus draws one picture. A node that does not answer is not the end: it may
// be starting again.
func drawStatus(c *cli.Context, out *os.File) error {
	p := picture{at: time.Now()}
	p.width, p.height, _ = terminalSize(out)
	p.status, _, p.fault = fetchStatus(c.Context, adminOf(c))
	if p.fault == nil {
		p.traffic = fetchTraffic(c.Context, adminOf(c))
	}
	return draw(out, p.lines())
}

// What a terminal is told; see ECMA-48 and xterm's ctlseqs.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, without cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

// onScreen gives back the terminal as it was found.
func onScreen(out io.Writer, f func() error) error {
	if _, err := io.WriteString(out, enterScreen); err != nil {
		return err
	}
	defer io.WriteString(out, leaveScreen)
	return f()
}

// draw writes over the picture before: what does not change does not flicker.
func draw(out io.Writer, lines []string) error {
	text := home
	for i, line := range lines {
		if i > 0 {
			text += "\r\n"
		}
		text += line + restOfLine
	}
	_, err := io.WriteString(out, text+restBelow)
	return err
}
