package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	"kvca/proxy"
)

// demoGateway is one of the gateways that are compared: one node, or several that
// route as one.
type demoGateway struct {
	name  string
	nodes []*node
}

func (g *demoGateway) backendIDs() (ids []string) {
	for _, e := range g.nodes[0].engines {
		ids = append(ids, e.id)
	}
	return ids
}

func (g *demoGateway) clientURLs() (urls []string) {
	for _, n := range g.nodes {
		urls = append(urls, n.ClientURL())
	}
	return urls
}

// demoFleet are the gateways of a demo. The first is the one that is shown, which
// others may use too.
type demoFleet struct {
	gateways []demoGateway
	log      slog.LevelVar
}

// openFleet assembles both gateways, which then have their addresses.
func openFleet(d *demoSettings, logs, notes io.Writer) (*demoFleet, error) {
	if d.anyListen {
		d.listen = freeAddress("listen", d.listen, notes)
	}
	if d.anyAdmin {
		d.admin = freeAddress("admin", d.admin, notes)
	}
	f := &demoFleet{gateways: []demoGateway{{name: "kvca (cost)"}, {name: "round-robin"}}}
	if d.precise {
		f.gateways[0].name = "kvca (precise)"
	}
	f.log.Set(slog.LevelWarn)
	if err := f.open(d, slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: &f.log}))); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// open assembles the nodes. Those of the cluster share the backends of the first,
// and join it.
func (f *demoFleet) open(d *demoSettings, log *slog.Logger) error {
	for i := range d.nodes {
		if err := f.gateways[0].add(d, log, d.member(i, f.gateways[0].nodes)); err != nil {
			return err
		}
	}
	return f.gateways[1].add(d, log, map[string][]string{
		"node-name": {"round-robin"}, "policy": {"round-robin"}, "gossip": {off}, "simulate": {strconv.Itoa(d.backends)},
	})
}

// member is what the i-th node of the cluster is told, given those before it.
func (d *demoSettings) member(i int, before []*node) map[string][]string {
	given := map[string][]string{"node-name": {fmt.Sprintf("node-%d", i)}, "gossip": {demoAny}, "link": {demoAny}}
	if i == 0 {
		given["listen"], given["admin"] = []string{d.listen}, []string{d.admin}
		given["simulate"] = []string{strconv.Itoa(d.backends)}
		given["simulate-events"] = []string{strconv.FormatBool(d.precise)}
		return given
	}
	given["join"] = []string{before[0].gossip()}
	for _, e := range before[0].engines {
		c := e.config()
		given["backend"] = append(given["backend"], e.id+"="+c.URL)
		if c.Events != "" {
			given["events"] = append(given["events"], e.id+"="+c.Events)
		}
	}
	return given
}

// demoAny is an address whose port nobody has to know.
const demoAny = "127.0.0.1:0"

// freeAddress is the address, or one with any port if it is taken.
func freeAddress(flag, address string, notes io.Writer) string {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
		return address
	}
	host, _, split := net.SplitHostPort(address)
	if !errors.Is(err, syscall.EADDRINUSE) || split != nil {
		return address // opening it will say what is wrong
	}
	fmt.Fprintf(notes, "%s is taken: using another port for --%s\n", address, flag)
	return net.JoinHostPort(host, "0")
}

// add assembles a node from what it is told. What the environment says of real
// ones has no part in it.
func (g *demoGateway) add(d *demoSettings, log *slog.Logger, told map[string][]string) error {
	given := map[string][]string{
		"listen": {demoAny}, "admin": {demoAny}, "debug-headers": {"true"}, "simulate-profile": {d.profile},
		"simulate-speed": {strconv.FormatFloat(d.speed, 'g', -1, 64)},
	}
	maps.Copy(given, told)
	s, err := resolve(sources{flag: func(o *option) ([]string, bool) { values, ok := given[o.name]; return values, ok }})
	if err != nil {
		return err
	}
	n, err := newNode(s, log.With("node", s.proxy.Node))
	if err == nil {
		g.nodes = append(g.nodes, n)
	}
	return err
}

// nodes are those of all gateways.
func (f *demoFleet) nodes() (all []*node) {
	for _, g := range f.gateways {
		all = append(all, g.nodes...)
	}
	return all
}

// close ends nodes that were not run.
func (f *demoFleet) close() {
	for _, n := range f.nodes() {
		n.Close()
	}
}

// run runs the nodes, calls play when all take requests, and ends them when it
// returns. The context that play gets ends with ctx or when a node fails. All of
// them have ended when run returns.
func (f *demoFleet) run(ctx context.Context, play func(context.Context)) error {
	playing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var lives []*demoLife
	for _, n := range f.nodes() {
		lives = append(lives, begin(context.WithoutCancel(ctx), n, stop))
	}
	err := f.ready(playing)
	if err == nil {
		play(playing)
	}
	if ctx.Err() != nil {
		err = nil // who ends the demo while it starts has seen enough
	}
	// One after another, since a goodbye needs somebody to hear it, and the first
	// last, since it has the backends. That they miss each other then is no news.
	f.log.Set(slog.LevelError)
	for _, l := range slices.Backward(lives) {
		err = errors.Join(err, l.end())
	}
	return err
}

// demoLife is a node that runs.
type demoLife struct {
	stop  context.CancelFunc
	ended chan error
}

// begin runs a node; failed is told when it ends by itself.
func begin(ctx context.Context, n *node, failed context.CancelCauseFunc) *demoLife {
	ctx, stop := context.WithCancel(ctx)
	l := &demoLife{stop, make(chan error, 1)}
	go func() {
		err := n.Run(ctx)
		if err != nil {
			err = fmt.Errorf("%s: %w", n.settings.proxy.Node, err)
			failed(err)
		}
		l.ended <- err
	}()
	return l
}

func (l *demoLife) end() error {
	l.stop()
	return <-l.ended
}

// ready waits until every node knows its backends and its peers.
func (f *demoFleet) ready(ctx context.Context) error {
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: adminTimeout}
	for _, g := range f.gateways {
		for _, n := range g.nodes {
			if err := n.await(ctx, client, len(g.nodes)); err != nil {
				return fmt.Errorf("wait for %s: %w", n.settings.proxy.Node, err)
			}
		}
	}
	return nil
}

// meetTime bounds the wait for peers to find each other.
const meetTime = 20 * time.Second

// await waits until the node takes requests, as one of that many.
func (n *node) await(ctx context.Context, client *http.Client, members int) error {
	// It answers when its backends are configured; before that it would not know
	// whom to wait for.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.AdminURL()+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if err := n.pool.WaitReady(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, meetTime, fmt.Errorf("no cluster of %d nodes within %v", members, meetTime))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !n.meets(members) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// meets is whether the node is ready as one of that many that are linked.
func (n *node) meets(members int) bool {
	if n.peers == nil {
		return members == 1
	}
	return n.peers.Ready() && linked(n.peers.Status().Members) == members
}

// linked counts the members that route as one with the node whose view they are,
// itself included.
func linked(members []proxy.Member) (n int) {
	for _, m := range members {
		if m.State == "alive" && (m.Link == "up" || m.Link == "self") {
			n++
		}
	}
	return n
}
