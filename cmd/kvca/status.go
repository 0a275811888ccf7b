package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
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

// clusterStatus is what of /cluster/status is shown.
type clusterStatus struct {
	Node    string `json:"node"`
	Cluster string `json:"cluster"`
	Version string `json:"version"`
	Ready   bool   `json:"ready"`
	Members []struct {
		Name    string  `json:"name"`
		Address string  `json:"address"`
		State   string  `json:"state"`
		Ready   bool    `json:"ready"`
		LagMS   float64 `json:"lag_ms"`
	} `json:"members"`
	Backends []struct {
		ID          string   `json:"id"`
		URL         string   `json:"url"`
		Models      []string `json:"models"`
		Health      string   `json:"health"`
		Owner       string   `json:"owner"`
		Active      int64    `json:"active"`
		NovelBlocks int64    `json:"novel_blocks"`
		Running     float64  `json:"running"`
		Waiting     float64  `json:"waiting"`
		KVUsage     float64  `json:"kv_usage"`
	} `json:"backends"`
	BlockMap struct {
		Blocks    int64  `json:"blocks"`
		Locations int64  `json:"locations"`
		Bytes     int64  `json:"bytes"`
		MaxBytes  int64  `json:"max_bytes"`
		Expired   uint64 `json:"expired"`
		Evicted   uint64 `json:"evicted"`
	} `json:"block_map"`
	Reservations struct {
		Held     int64  `json:"held"`
		Granted  uint64 `json:"granted"`
		Refused  uint64 `json:"refused"`
		Degraded uint64 `json:"degraded"`
	} `json:"reservations"`
}

func fetchStatus(ctx context.Context, admin string) (*clusterStatus, []byte, error) {
	raw, err := callAdmin(ctx, http.MethodGet, admin, "/cluster/status", nil)
	if err != nil {
		return nil, nil, err
	}
	s := new(clusterStatus)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, nil, fmt.Errorf("read the node's answer: %w", err)
	}
	return s, raw, nil
}

func writeStatus(out io.Writer, s *clusterStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	m, r := &s.BlockMap, &s.Reservations
	fmt.Fprintf(w, "node\t%s\n", s.Node)
	fmt.Fprintf(w, "cluster\t%s\n", s.Cluster)
	fmt.Fprintf(w, "version\t%s\n", s.Version)
	fmt.Fprintf(w, "ready\t%s\n", yesNo(s.Ready))
	fmt.Fprintf(w, "block map\t%d blocks, %d locations, %.1f of %.1f MiB, %d expired, %d evicted\n",
		m.Blocks, m.Locations, mebibytes(m.Bytes), mebibytes(m.MaxBytes), m.Expired, m.Evicted)
	fmt.Fprintf(w, "reservations\t%d held, %d granted, %d refused, %d degraded\n\n", r.Held, r.Granted, r.Refused, r.Degraded)
	fmt.Fprintln(w, "MEMBER\tADDRESS\tSTATE\tREADY\tLAG")
	for _, m := range s.Members {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.0f ms\n", m.Name, m.Address, m.State, yesNo(m.Ready), m.LagMS)
	}
	fmt.Fprintln(w, "\nBACKEND\tHEALTH\tACTIVE\tNOVEL\tRUNNING\tWAITING\tKV\tOWNER\tMODELS\tURL")
	for _, b := range s.Backends {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.0f\t%.0f\t%.0f%%\t%s\t%s\t%s\n", b.ID, b.Health, b.Active, b.NovelBlocks,
			b.Running, b.Waiting, 100*b.KVUsage, b.Owner, strings.Join(b.Models, ","), b.URL)
	}
	return w.Flush()
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
