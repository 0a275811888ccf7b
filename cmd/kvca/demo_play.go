package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"kvca/bench/demo"
)

// How often the table is shown: where it is drawn over the one before, and where
// each is printed below it.
const (
	drawInterval  = time.Second
	printInterval = 5 * time.Second
)

// demoModel is what the simulated backends serve.
const demoModel = "sim"

// playDemo holds the conversations and shows the table until ctx ends or the
// demo's duration is over. When it returns nothing of it is left, and the last
// table, which it returns too, has been shown.
func playDemo(ctx context.Context, d *demoSettings, f *demoFleet, screen *demo.Screen) []demo.Row {
	greet(screen, d, f)
	if d.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.duration)
		defer cancel()
	}
	b, players := cast(d, f, screen)
	var playing sync.WaitGroup
	for _, p := range players {
		playing.Go(func() { p.Run(ctx) })
	}
	b.show(ctx)
	fmt.Fprintln(screen, "ending: waiting for answers that are under way")
	playing.Wait()
	return b.draw()
}

// greet says where the gateway is and how to try it.
func greet(w io.Writer, d *demoSettings, f *demoFleet) {
	nodes := f.gateways[0].nodes
	url, admin := nodes[0].ClientURL(), nodes[0].AdminURL()
	fmt.Fprintf(w, `KVCA, %d nodes that route as one in front of %d simulated backends (%s, %g times real speed), beside round-robin
in front of as many. %d conversations at a time with each, the same for both; each turn goes to a random node.
Times are as the clients measure them.

  base URL  %s/v1   model %s
  nodes     %s
  page      %s/
  status    %s status --admin %s

Try it:

  curl -si %s/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"%s","messages":[{"role":"user","content":"Hello"}]}'

`, len(nodes), d.backends, d.profile, d.speed, d.sessions, url, demoModel,
		strings.Join(f.gateways[0].clientURLs(), " "), admin, d.program, admin, url, demoModel)
}

// board is the table on its screen.
type board struct {
	screen *demo.Screen
	rows   []boardRow
	nodes  []*node // of the gateway that is shown
}

type boardRow struct {
	name   string
	tally  *demo.Tally
	failed bool // its first error has been told
}

// cast gives each gateway its player and its row.
func cast(d *demoSettings, f *demoFleet, screen *demo.Screen) (*board, []*demo.Player) {
	b := &board{screen: screen, nodes: f.gateways[0].nodes}
	var players []*demo.Player
	for _, g := range f.gateways {
		t := demo.NewTally(g.backendIDs()...)
		b.rows = append(b.rows, boardRow{name: g.name, tally: t})
		players = append(players, &demo.Player{URLs: g.clientURLs(), Script: d.script, Sessions: d.sessions, Tally: t})
	}
	return b, players
}

// show draws the table again and again until ctx ends.
func (b *board) show(ctx context.Context) {
	interval := printInterval
	if b.screen.Live() {
		interval = drawInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.draw()
		case <-ctx.Done():
			return
		}
	}
}

// draw shows the table as it is now, below the first error of each gateway, which
// is told once.
func (b *board) draw() []demo.Row {
	list := make([]demo.Row, len(b.rows))
	for i := range b.rows {
		r := &b.rows[i]
		list[i] = demo.Row{Name: r.name, Snapshot: r.tally.Snapshot()}
		if err := list[i].Err; err != nil && !r.failed {
			r.failed = true
			fmt.Fprintf(b.screen, "first error of %s: %v\n", r.name, err)
		}
	}
	b.screen.Draw(demo.Table(list) + clusterLines(b.nodes) + indexLine(b.nodes))
	return list
}
