package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
)

// demoGateway is one of the gateways that are compared.
type demoGateway struct {
	name string
	*node
}

func (g *demoGateway) backendIDs() []string {
	ids := make([]string, len(g.engines))
	for i, e := range g.engines {
		ids[i] = e.id
	}
	return ids
}

// demoFleet are the gateways of a demo. The first is the one that is shown, which
// others may use too.
type demoFleet struct{ gateways []demoGateway }

// openFleet assembles both gateways, which then have their addresses.
func openFleet(d *demoSettings, log *slog.Logger, notes io.Writer) (*demoFleet, error) {
	if d.anyListen {
		d.listen = freeAddress("listen", d.listen, notes)
	}
	if d.anyAdmin {
		d.admin = freeAddress("admin", d.admin, notes)
	}
	f := new(demoFleet)
	for _, g := range []struct{ name, policy, listen, admin string }{
		{"kvca (cost)", "cost", d.listen, d.admin},
		{"round-robin", "round-robin", "127.0.0.1:0", "127.0.0.1:0"},
	} {
		n, err := d.open(g.policy, g.listen, g.admin, log)
		if err != nil {
			f.close()
			return nil, err
		}
		f.gateways = append(f.gateways, demoGateway{g.name, n})
	}
	return f, nil
}

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

// open assembles one gateway. What the environment says of real ones has no part
// in it.
func (d *demoSettings) open(policy, listen, admin string, log *slog.Logger) (*node, error) {
	given := map[string]string{
		"listen": listen, "admin": admin, "node-name": "demo-" + policy, "policy": policy, "debug-headers": "true",
		"simulate": strconv.Itoa(d.backends), "simulate-profile": d.profile,
		"simulate-speed": strconv.FormatFloat(d.speed, 'g', -1, 64),
	}
	s, err := resolve(sources{flag: func(o *option) ([]string, bool) {
		value, ok := given[o.name]
		return []string{value}, ok
	}})
	if err != nil {
		return nil, err
	}
	return newNode(s, log.With("gateway", policy))
}

// close ends gateways that were not run.
func (f *demoFleet) close() {
	for _, g := range f.gateways {
		g.Close()
	}
}

// run runs the gateways, calls play when all take requests, and ends them when it
// returns. The context that play gets ends with ctx or when a gateway fails. All
// of them have ended when run returns.
func (f *demoFleet) run(ctx context.Context, play func(context.Context)) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	playing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	errs := make([]error, len(f.gateways))
	var running sync.WaitGroup
	for i, g := range f.gateways {
		running.Go(func() {
			if err := g.Run(life); err != nil {
				errs[i] = fmt.Errorf("%s: %w", g.name, err)
				stop(errs[i])
			}
		})
	}
	err := f.ready(playing)
	if err == nil {
		play(playing)
	}
	end()
	running.Wait()
	if ctx.Err() != nil {
		err = nil // who ends the demo while it starts has seen enough
	}
	return errors.Join(append(errs, err)...)
}

// ready waits until every gateway knows its backends.
func (f *demoFleet) ready(ctx context.Context) error {
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: adminTimeout}
	for _, g := range f.gateways {
		// It answers when its backends are configured; before that it would not
		// know whom to wait for.
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.AdminURL()+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("wait for %s: %w", g.name, err)
		}
		answer.Body.Close()
		if err := g.pool.WaitReady(ctx); err != nil {
			return fmt.Errorf("wait for %s: %w", g.name, err)
		}
	}
	return nil
}
