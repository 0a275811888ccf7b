package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
)

// clusterStatus is what of /cluster/status is shown.
type clusterStatus struct {
	Node     string          `json:"node"`
	Cluster  string          `json:"cluster"`
	Version  string          `json:"version"`
	Ready    bool            `json:"ready"`
	Members  []memberStatus  `json:"members"`
	Backends []backendStatus `json:"backends"`
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
	Divergence map[string]int64 `json:"divergence"`
	Index      struct {
		Status     string         `json:"status"`
		Entries    int64          `json:"entries"`
		Bytes      int64          `json:"bytes"`
		MaxBytes   int64          `json:"max_bytes"`
		Sources    []sourceStatus `json:"sources"`
		Tokenizers []struct {
			Model   string            `json:"model"`
			Way     string            `json:"way"`
			Problem string            `json:"problem"`
			Ways    map[string]string `json:"ways"`
		} `json:"tokenizers"`
		Distrusted []string `json:"distrusted"`
		Lost       []string `json:"lost"`
	} `json:"index"`
}

type sourceStatus struct {
	Backend   string `json:"backend"`
	Rank      int    `json:"rank"`
	By        string `json:"by"`
	State     string `json:"state"`
	Blocks    int64  `json:"blocks"`
	BlockSize int    `json:"block_size"`
	Problem   string `json:"problem"`
}

type memberStatus struct {
	Name    string  `json:"name"`
	Address string  `json:"address"`
	State   string  `json:"state"`
	Ready   bool    `json:"ready"`
	LagMS   float64 `json:"lag_ms"`
	Dirty   bool    `json:"dirty"`
	Link    string  `json:"link"`
	RTTMS   float64 `json:"rtt_ms"`
	Owned   int     `json:"owned"`
	Held    int     `json:"held"`
	Client  string  `json:"client"`
	Differs string  `json:"differs"`
}

type backendStatus struct {
	ID          string            `json:"id"`
	URL         string            `json:"url"`
	Learned     bool              `json:"learned"`
	Models      []string          `json:"models"`
	Health      string            `json:"health"`
	Peers       map[string]string `json:"peers"`
	Owner       string            `json:"owner"`
	Generation  uint64            `json:"generation"`
	Active      int64             `json:"active"`
	NovelBlocks int64             `json:"novel_blocks"`
	Running     float64           `json:"running"`
	Waiting     float64           `json:"waiting"`
	KVUsage     float64           `json:"kv_usage"`
}

func fetchStatus(ctx context.Context, admin adminAPI) (*clusterStatus, []byte, error) {
	raw, err := admin.call(ctx, http.MethodGet, "/cluster/status", nil)
	if err != nil {
		return nil, nil, err
	}
	s := new(clusterStatus)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, nil, fmt.Errorf("read the node's answer: %w", err)
	}
	return s, raw, nil
}

// The titles of the tables.
const (
	memberTitles  = "MEMBER\tSTATE\tREADY\tLINK\tRTT\tLAG\tDIVERGED\tOWNED\tHELD\tADDRESS\tCLIENTS"
	backendTitles = "BACKEND\tHEALTH\tOWNER\tGENERATION\tACTIVE\tNOVEL\tRUNNING\tWAITING\tKV\tMODELS\tURL"
)

// writeStatus writes the status for people: the node, then its peers, then the
// backends. What is as it should be takes no room of its own.
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
	fmt.Fprintln(w, memberTitles)
	for i := range s.Members {
		fmt.Fprintln(w, s.Members[i].row(s.Divergence))
	}
	fmt.Fprintln(w, "\n"+backendTitles)
	for i := range s.Backends {
		fmt.Fprintln(w, s.Backends[i].row())
	}
	writeIndex(w, s)
	for _, m := range s.Members {
		if m.Differs != "" {
			fmt.Fprintf(w, "\n%s has other settings: %s\n", m.Name, m.Differs)
		}
	}
	return w.Flush()
}

// writeIndex writes what the precise index is told, and by whom; nothing where nobody
// is to tell it anything.
func writeIndex(w io.Writer, s *clusterStatus) {
	x := &s.Index
	if len(x.Sources) == 0 && (x.Status == "disabled" || x.Status == "") {
		return
	}
	fmt.Fprintf(w, "\nprecise index\t%s, %d entries, %.1f of %.1f MiB\n", x.Status, x.Entries, mebibytes(x.Bytes), mebibytes(x.MaxBytes))
	for _, t := range x.Tokenizers {
		fmt.Fprintf(w, "tokens of %s\t%s\n", t.Model, cmp.Or(t.Way, t.Problem))
		if local := t.Ways["local"]; strings.HasPrefix(local, "mismatch") {
			fmt.Fprintf(w, "\tthe tokenizer's folder is not used: %s\n", local)
		}
	}
	for _, model := range x.Distrusted {
		fmt.Fprintf(w, "tokens of %s\tpredictions did not come true: the block map decides for a while\n", model)
	}
	for _, model := range x.Lost {
		fmt.Fprintf(w, "cache of %s\tnobody tells of it any more: the block map decides\n", model)
	}
	fmt.Fprintln(w, "\nSOURCE\tRANK\tBY\tSTATE\tBLOCKS\tBLOCK SIZE\tPROBLEM")
	for _, o := range x.Sources {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%d\t%s\n", o.Backend, o.Rank, o.By, o.State, o.Blocks, o.BlockSize, cmp.Or(o.Problem, "-"))
	}
}

// row is a member's line. Distances are told of those that there is a link with.
func (m *memberStatus) row(divergence map[string]int64) string {
	cells := []string{m.Name, m.State, yesNo(m.Ready), m.Link, "-", "-", "-"}
	if m.Link == "up" {
		cells[4], cells[5] = fmt.Sprintf("%.2f ms", m.RTTMS), fmt.Sprintf("%.0f ms", m.LagMS)
	}
	if n, compared := divergence[m.Name]; compared && m.Link != "self" {
		cells[6] = fmt.Sprint(n)
	}
	if m.Dirty {
		cells[6] += " dirty"
	}
	return strings.Join(append(cells, fmt.Sprint(m.Owned), fmt.Sprint(m.Held), cmp.Or(m.Address, "-"), m.Client), "\t")
}

// row is a backend's line; peers that see another health are named with it.
func (b *backendStatus) row() string {
	health, url := b.Health, b.URL
	for _, peer := range slices.Sorted(maps.Keys(b.Peers)) {
		if seen := b.Peers[peer]; seen != b.Health {
			health += ", " + peer + ": " + seen
		}
	}
	if b.Learned {
		url += " (learned)"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%.0f\t%.0f\t%.0f%%\t%s\t%s", b.ID, health, b.Owner, b.Generation,
		b.Active, b.NovelBlocks, b.Running, b.Waiting, 100*b.KVUsage, strings.Join(b.Models, ","), url)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
