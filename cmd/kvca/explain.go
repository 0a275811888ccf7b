package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"kvca/router"
	"kvca/state/cbr"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "ask a node where it would send a request, and why",
		ArgsUsage: "[FILE]",
		Description: "Reads the request's body from FILE, or from standard input. Nothing is sent to a backend,\n" +
			"and nothing is booked.",
		Flags: append(adminFlags(),
			&cli.StringFlag{Name: "endpoint", Value: cbr.Chat.String(), Usage: "`PATH` that the request is for"}),
		Action: explain,
	}
}

func explain(c *cli.Context) error {
	body, err := argumentOrInput(c)
	if err != nil {
		return err
	}
	path := "/explain?endpoint=" + url.QueryEscape(c.String("endpoint"))
	answer, err := adminOf(c).call(c.Context, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if c.Bool("json") {
		return writeRaw(c.App.Writer, answer)
	}
	var d router.Decision
	if err := json.Unmarshal(answer, &d); err != nil {
		return fmt.Errorf("explain: read the node's answer: %w", err)
	}
	return writeDecision(c.App.Writer, &d)
}

// argumentOrInput reads the file that the argument names, or standard input.
func argumentOrInput(c *cli.Context) ([]byte, error) {
	switch {
	case c.NArg() > 1:
		return nil, errors.New("explain: want one file at most; flags come before it")
	case c.NArg() == 0 || c.Args().First() == "-":
		return readInput(c.App.Reader)
	}
	f, err := os.Open(c.Args().First())
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	defer f.Close()
	return readInput(f)
}

// writeRaw writes an answer with a line's end.
func writeRaw(w io.Writer, answer []byte) error {
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(answer))
	return err
}

func writeDecision(out io.Writer, d *router.Decision) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	degraded := ""
	if d.Degraded {
		degraded = " (degraded: the owner could not be asked)"
	}
	fmt.Fprintf(w, "backend\t%s\n", d.Backend)
	fmt.Fprintf(w, "reason\t%s\n", d.Reason)
	fmt.Fprintf(w, "phase\t%s\n", d.Phase)
	fmt.Fprintf(w, "policy\t%s\n", d.Policy)
	fmt.Fprintf(w, "blocks\t%d of %d matched, %d novel (%s)\n", d.MatchedBlocks, d.ChainBlocks, d.NovelBlocks, d.BlockUnit)
	fmt.Fprintf(w, "owner\t%s%s\n\n", d.Owner, degraded)
	fmt.Fprintln(w, "CANDIDATE\tELIGIBLE\tMATCHED\tLOAD\tCOST\tWHY")
	for _, b := range d.Candidates {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.0f\t%s\n", b.Backend, yesNo(b.Eligible), b.MatchedBlocks, b.Load, b.Cost, b.Why)
	}
	return w.Flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
