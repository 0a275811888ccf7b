package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// picture is what `status --watch` shows on a terminal at a time.
type picture struct {
	status        *clusterStatus
	traffic       *traffic // nil: unknown
	fault         error    // why there is no status
	at            time.Time
	width, height int
}

// lines are at most as many and as wide as the terminal. What does not fit of the
// tables is counted: first backends go, the least loaded of them, then members.
func (p *picture) lines() []string {
	head := fmt.Sprintf("kvca status  %s  (q or ctrl-C ends)", p.at.Format(time.TimeOnly))
	if p.fault != nil {
		return p.fit([]string{head, "", "no status: " + p.fault.Error(), "asked again every second"})
	}
	lines := append([]string{head}, p.node()...)
	members := append([]string{""}, table(memberTitles, p.members())...)
	backends := append([]string{""}, table(backendTitles, p.backends())...)
	notes := p.notes()
	room := p.height - len(lines) - len(notes)
	keep := min(len(members), max(room-min(len(backends), 6), 3))
	members = shorten(members, keep, "members")
	backends = shorten(backends, room-len(members), "backends, less loaded")
	return p.fit(slices.Concat(lines, members, backends, notes))
}

// fit cuts what is too wide or too much. The last column stays free: what is erased
// after a character there takes it along on some terminals.
func (p *picture) fit(lines []string) []string {
	lines = lines[:min(len(lines), max(p.height, 0))]
	for i, line := range lines {
		if r := []rune(line); len(r) >= p.width {
			lines[i] = string(r[:max(p.width-1, 0)])
		}
	}
	return lines
}

// node is what there is to say of the node as a whole.
func (p *picture) node() []string {
	s := p.status
	m, r := &s.BlockMap, &s.Reservations
	state := "ready"
	if !s.Ready {
		state = "not ready"
	}
	alive := 0
	for i := range s.Members {
		if s.Members[i].State == "alive" {
			alive++
		}
	}
	lines := []string{fmt.Sprintf("%s of %s, %s, %s, %d of %d members alive", s.Node, s.Cluster, s.Version, state, alive, len(s.Members))}
	if p.traffic != nil {
		lines = append(lines, p.traffic.lines()...)
	}
	line := fmt.Sprintf("block map %d locations, %.1f of %.1f MiB; reservations %d held, %d granted, %d refused, %d degraded",
		m.Locations, mebibytes(m.Bytes), mebibytes(m.MaxBytes), r.Held, r.Granted, r.Refused, r.Degraded)
	if x := &s.Index; len(x.Sources) > 0 {
		line += fmt.Sprintf("; precise index %s, %d entries", x.Status, x.Entries)
	}
	return append(lines, line)
}

func (p *picture) members() []string {
	rows := make([]string, 0, len(p.status.Members))
	for i := range p.status.Members {
		rows = append(rows, p.status.Members[i].row(p.status.Divergence))
	}
	return rows
}

// backends are sorted: first those that something is wrong with, then by load.
func (p *picture) backends() []string {
	list := make([]*backendStatus, 0, len(p.status.Backends))
	for i := range p.status.Backends {
		list = append(list, &p.status.Backends[i])
	}
	slices.SortFunc(list, func(a, b *backendStatus) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(b.Active, a.Active),
			cmp.Compare(b.NovelBlocks, a.NovelBlocks), cmp.Compare(a.ID, b.ID))
	})
	rows := make([]string, 0, len(list))
	for _, b := range list {
		rows = append(rows, b.row())
	}
	return rows
}

// order is 0 for a backend that something is wrong with, else 1.
func (b *backendStatus) order() int {
	if b.Health != "healthy" {
		return 0
	}
	return 1
}

// notes are what an operator would want to know beside the tables, few of them.
func (p *picture) notes() []string {
	var notes []string
	for _, m := range p.status.Members {
		if m.Differs != "" {
			notes = append(notes, m.Name+" has other settings: "+m.Differs)
		}
	}
	for _, o := range p.status.Index.Sources {
		if o.Problem != "" {
			notes = append(notes, fmt.Sprintf("events of %s, rank %d: %s", o.Backend, o.Rank, o.Problem))
		}
	}
	if most := max(p.height/4, 1); len(notes) > most {
		notes = append(notes[:most-1], fmt.Sprintf("... %d more notes: kvca status", len(notes)-most+1))
	}
	if len(notes) > 0 {
		notes = append([]string{""}, notes...)
	}
	return notes
}

// table aligns rows of cells that tabs part.
func table(titles string, rows []string) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, titles)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	w.Flush() // a Builder takes all
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// shorten keeps the first lines of a table, and says how many rows it left out.
func shorten(lines []string, keep int, of string) []string {
	if len(lines) <= keep {
		return lines
	}
	if keep < 3 { // a blank one, the titles and the count say less than nothing
		return nil
	}
	return append(lines[:keep-1:keep-1], fmt.Sprintf("... %d more %s", len(lines)-keep+1, of))
}
