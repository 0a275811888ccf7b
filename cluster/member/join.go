package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	perRound     = 3                // addresses called in one round
	maxResolved  = 256              // addresses taken of one name
	resolveWait  = 2 * time.Second  // for the names of one round
	calmPause    = 15 * time.Second // between rounds when nobody is missing
	missingPause = 3 * time.Second  // when someone is
	briskPause   = time.Second      // while displaced, and after a change
	settleRounds = 3                // after a change
	displacedFor = 40 * time.Second // since that was last seen
)

// joiner finds other nodes, for ever. Only its goroutine touches it.
type joiner struct {
	m         *Members
	joins     []target
	alone     int  // rounds in a row without another live node
	missing   bool // the last round had someone to call, or a name without addresses
	unsettled int  // rounds that still compare with a live member
}

// run does rounds until ctx ends. The first is over when m.joined closes.
func (j *joiner) run(ctx context.Context) {
	j.round(ctx)
	close(j.m.joined)
	last := time.Now()
	for {
		t := time.NewTimer(time.Until(last.Add(jitter(j.pause()))))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-j.m.hurry: // something changed: the pause is shorter now
			t.Stop()
			j.unsettled = settleRounds
		case <-t.C:
			j.round(ctx)
			last = time.Now()
		}
	}
}

// pause is the time between two rounds, before jitter.
func (j *joiner) pause() time.Duration {
	switch {
	case j.unsettled > 0 || j.m.displaced():
		return briskPause
	case j.missing && j.alone > 0:
		return min(time.Second<<min(j.alone-1, 4), missingPause)
	case j.missing:
		return missingPause
	}
	return calmPause
}

// jitter spreads d over d/2 to 3d/2.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}

// round calls up to perRound addresses that should be members and are not.
func (j *joiner) round(ctx context.Context) {
	live, lost := j.m.whereabouts()
	wanted, complete := j.resolve(ctx)
	wanted = append(wanted, lost...)
	wanted = slices.DeleteFunc(wanted, func(a string) bool { return slices.Contains(live, a) })
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	j.missing = len(wanted) > 0 || !complete
	shuffle(wanted)
	wanted = append(j.acquaintances(live), wanted...)
	j.call(ctx, wanted[:min(len(wanted), perRound)])
	if j.m.liveCount() > 1 {
		j.alone = 0
	} else {
		j.alone++
	}
}

// acquaintances are live members that this round calls all the same. After a change, one:
// gossip reaches everyone most of the time, and what it missed would wait for the
// next exchange of states. While displaced, two: those who hold this node's name for
// another address are to hear of this one.
func (j *joiner) acquaintances(live []string) []string {
	n := 0
	if j.unsettled > 0 {
		j.unsettled--
		n = 1
	}
	if j.m.displaced() {
		n = perRound - 1
	}
	others := slices.DeleteFunc(live, func(a string) bool { return a == j.m.self })
	shuffle(others)
	return others[:min(len(others), n)]
}

func shuffle(s []string) {
	rand.Shuffle(len(s), func(a, b int) { s[a], s[b] = s[b], s[a] })
}

// resolve gives the addresses that are configured now, and whether every name has
// some: one that has none yet stands for nodes that are missing.
func (j *joiner) resolve(ctx context.Context) (all []string, complete bool) {
	ctx, cancel := context.WithTimeout(ctx, resolveWait)
	defer cancel()
	joins, complete := j.services(ctx)
	for _, t := range joins {
		if t.ip.IsValid() {
			all = append(all, t.String())
			continue
		}
		ips, err := j.m.config.Resolver.LookupNetIP(ctx, "ip", t.host)
		if err != nil {
			complete = false
			j.unresolved(ctx, t, err)
			continue
		}
		j.m.said.forget(t.String())
		j.warnLoopback(t, ips)
		for _, ip := range ips[:min(len(ips), maxResolved)] {
			all = append(all, t.at(ip))
		}
	}
	return all, complete
}

// unresolved tells of a name without addresses, unless it is this node that ends.
func (j *joiner) unresolved(ctx context.Context, t target, err error) {
	if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		j.failed("join address does not resolve, will be tried again", t.String(), err)
	}
}

// services puts the targets of SRV records in the place of their names; complete is
// whether every name has some.
func (j *joiner) services(ctx context.Context) (joins []target, complete bool) {
	complete = true
	for _, t := range j.joins {
		if !t.srv {
			joins = append(joins, t)
			continue
		}
		records, err := j.records(ctx, t.host)
		if err != nil {
			complete = false
			j.unresolved(ctx, t, err)
			continue
		}
		j.m.said.forget(t.String())
		joins = append(joins, records...)
	}
	return joins, complete
}

// records are the targets of one name's SRV records. Who has priority does not
// matter: all of them are nodes.
func (j *joiner) records(ctx context.Context, name string) ([]target, error) {
	resolver, ok := j.m.config.Resolver.(serviceResolver)
	if !ok {
		return nil, errors.New("the resolver knows no SRV records")
	}
	_, records, err := resolver.LookupSRV(ctx, "", "", name)
	if len(records) == 0 && err != nil {
		return nil, err
	}
	var all []target
	for _, r := range records[:min(len(records), maxResolved)] {
		host := strings.TrimSuffix(r.Target, ".")
		if host != "" && r.Port != 0 {
			all = append(all, target{host: host, port: r.Port})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no SRV record names a node")
	}
	return all, nil
}

// warnLoopback says that a name's nodes can't answer this one.
func (j *joiner) warnLoopback(t target, ips []netip.Addr) {
	own, err := netip.ParseAddrPort(j.m.self)
	if err != nil || !own.Addr().IsLoopback() {
		return
	}
	for _, ip := range ips {
		if !ip.IsLoopback() && j.m.said.first("loopback "+t.String(), time.Now()) {
			j.m.log.Warn("gossip advertises loopback: the nodes of the join address cannot reach it",
				"join", t.String(), "resolved", ip.String(), "advertised", j.m.self)
			return
		}
	}
}

// call exchanges states with each address, side by side: a dead one costs its
// timeout once.
func (j *joiner) call(ctx context.Context, addrs []string) {
	if ctx.Err() != nil {
		return
	}
	var wait sync.WaitGroup
	for _, a := range addrs {
		wait.Go(func() {
			_, err := j.m.list.Join([]string{a})
			j.called(ctx, a, err)
		})
	}
	wait.Wait()
}

func (j *joiner) called(ctx context.Context, addr string, err error) {
	if err == nil {
		j.m.metrics.joins.WithLabelValues("ok").Inc()
		j.m.said.forget(addr)
		return
	}
	if ctx.Err() != nil {
		return
	}
	j.m.metrics.joins.WithLabelValues("failed").Inc()
	if inner := errors.Unwrap(err); inner != nil {
		err = inner // without the list's frame
	}
	if e, _ := find(err.Error()); e.refuses() || strings.Contains(err.Error(), refusedPrefix) {
		j.m.log.Debug("join refused", "address", addr, "error", err) // told as a refusal
		return
	}
	j.failed("join failed, will be tried again", addr, err)
}

// failed logs the first failure of an address since it last worked, the others at debug.
func (j *joiner) failed(what, addr string, err error) {
	if j.m.said.first(addr, time.Now()) {
		j.m.log.Warn(what, "address", addr, "error", err)
		return
	}
	j.m.log.Debug(what, "address", addr, "error", err)
}
