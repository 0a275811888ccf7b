package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kvca/bench/load"
	"kvca/bench/nodes"
	"kvca/proxy/tenant"
)

const (
	limitNodes = 8
	// serveTime is how long a backend takes for an answer, serveSpread by how much
	// that varies either way.
	serveTime   = 100 * time.Millisecond
	serveSpread = 50 * time.Millisecond
	// limitWarm is left out: a quiet tenant has saved up a burst.
	limitWarm = 2 * time.Second
	// floodRate is what a flooding tenant sends a second, over all nodes.
	floodRate = 320
	// within is how near to its limit a flooding tenant is held.
	within = 0.05
	// fairRatio is by how much another tenant's flood may raise the p99 of a quiet one.
	fairRatio = 1.5
	// maxActive is what the queue lets a backend have at once: less than the flood
	// could use.
	maxActive = 2
)

// limited are the tenants of the measurement; each one's key is made anew.
var limited = []struct{ name, limits string }{
	{"requests", "limits: {requests_per_second: 100}"},
	{"one-node", "limits: {requests_per_second: 100}"},
	{"orphan", "limits: {requests_per_second: 100}"},
	{"tokens", "limits: {tokens_per_second: 20000}"},
	{"concurrent", "limits: {concurrent: 4}"},
	{"loud", "limits: {requests_per_second: 100}"},
	{"flood", "weight: 1"},
	{"quiet", "weight: 1"},
}

// limitRig is a cluster with tenants.
type limitRig struct {
	*rig
	cluster *nodes.Cluster
	keys    map[string]string
	lasts   time.Duration
}

// runLimits holds tenants to their limits over eight nodes, and one beside another.
func runLimits(ctx context.Context, args []string) (err error) {
	s := newSettings("limits", "")
	lasts := s.flags.Duration("time", 20*time.Second, "how long each is measured")
	if err := s.parse(args); err != nil {
		return err
	}
	cfg := clusterFakes(serveTime)
	cfg.Spread = serveSpread
	r, err := newClusterRig(ctx, s, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	file, keys, err := keysFile(r.env.Dir)
	if err != nil {
		return err
	}
	r.Printf("%d nodes, %d backends that answer in %v, more or less by up to %v; each for %v after %v to warm up\n\n", limitNodes, clusterBackends, serveTime, serveSpread, *lasts, limitWarm)
	r.env.KvcaFlags = append(r.env.KvcaFlags, "--keys-file", file)
	plain := r.env.KvcaFlags
	broken := r.withCluster(ctx, limitNodes, func(c *nodes.Cluster) error {
		l := &limitRig{rig: r, cluster: c, keys: keys, lasts: *lasts}
		return errors.Join(l.rates(ctx), l.tokens(ctx), l.concurrency(ctx), l.fair(ctx, "beside a tenant with limits", "loud"), l.orphaned(ctx))
	})
	r.env.KvcaFlags = append(plain[:len(plain):len(plain)], "--max-active", fmt.Sprint(maxActive))
	for _, n := range []int{1, limitNodes} {
		broken = errors.Join(broken, r.withCluster(ctx, n, func(c *nodes.Cluster) error {
			l := &limitRig{rig: r, cluster: c, keys: keys, lasts: *lasts}
			return l.fair(ctx, fmt.Sprintf("in the queue, %d nodes, %d at once on each backend,", n, maxActive), "flood")
		}))
	}
	return broken
}

// keysFile writes the tenants with a new key each.
func keysFile(dir string) (file string, keys map[string]string, err error) {
	var b strings.Builder
	b.WriteString("tenants:\n")
	keys = map[string]string{}
	for _, t := range limited {
		key, hash := tenant.NewKey()
		keys[t.name] = key
		fmt.Fprintf(&b, "  - {name: %s, keys: [%q], %s}\n", t.name, hash, t.limits)
	}
	file = filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return "", nil, fmt.Errorf("write keys file: %w", err)
	}
	return file, keys, nil
}

// flood is a tenant's clients that send more than it may.
func (l *limitRig) flood(name string, list []*nodes.Node) load.Steady {
	l.seed += 1 << 20
	return load.Steady{
		Addrs: nodes.Addrs(list), Key: l.keys[name], Model: model, Bytes: 2 << 10, Rate: floodRate, Connections: 64,
		Warm: limitWarm, Timeout: requestTime, Seed: l.seed,
	}
}

// run lets clients send for the time, and its end is told to none of them.
func (l *limitRig) run(ctx context.Context, s load.Steady) *load.Admitted {
	ctx, cancel := context.WithTimeout(ctx, limitWarm+l.lasts)
	defer cancel()
	return s.Run(ctx)
}

// near judges a rate against its limit.
func (l *limitRig) near(ctx context.Context, what string, rate, limit float64, a *load.Admitted) error {
	off := rate/limit - 1
	degraded, err := l.degraded(ctx)
	return errors.Join(err,
		l.judge(off <= within && off >= -within, "%s: %.1f a second, limit %.0f (%+.1f %%); %d requests were refused; %.0f decisions without the owner so far",
			what, rate, limit, off*100, a.Refused, degraded),
		l.judge(a.Failed == 0, "%s: %d requests failed otherwise%s", what, a.Failed, because(a.Err)),
	)
}

func (l *limitRig) rates(ctx context.Context) error {
	even := l.run(ctx, l.flood("requests", l.cluster.Nodes))
	skewed := l.run(ctx, l.flood("one-node", l.cluster.Nodes[:1]))
	return errors.Join(
		l.near(ctx, "requests, through all nodes", float64(even.OK)/even.Elapsed.Seconds(), 100, even),
		l.near(ctx, "requests, through one node", float64(skewed.OK)/skewed.Elapsed.Seconds(), 100, skewed),
	)
}

func (l *limitRig) tokens(ctx context.Context) error {
	a := l.run(ctx, l.flood("tokens", l.cluster.Nodes))
	return l.near(ctx, "tokens, through all nodes", float64(a.Tokens)/a.Elapsed.Seconds(), 20_000, a)
}

// concurrency looks at the backends, since clients see answers late.
func (l *limitRig) concurrency(ctx context.Context) error {
	watching, cancel := context.WithTimeout(ctx, limitWarm+l.lasts)
	defer cancel()
	var most, sum, looks int64
	var watch sync.WaitGroup
	began := time.Now()
	watch.Go(func() {
		for sleep(watching, 20*time.Millisecond) == nil {
			s, err := l.stats(ctx)
			if err != nil || time.Since(began) < limitWarm {
				continue
			}
			var n int64
			for _, b := range s.Backends {
				n += b.Active
			}
			most, sum, looks = max(most, n), sum+n, looks+1
		}
	})
	a := l.flood("concurrent", l.cluster.Nodes).Run(watching)
	watch.Wait()
	degraded, err := l.degraded(ctx)
	if err != nil {
		return err
	}
	mean := float64(sum) / float64(max(looks, 1))
	return errors.Join(
		l.judge(most <= 4 || degraded > 0, "at once, through all nodes: %d at most, limit 4, which is exact but for decisions without the owner: %.0f so far; %.2f on average over %d looks, %.1f requests a second of %.0f that four slots could serve",
			most, degraded, mean, looks, float64(a.OK)/a.Elapsed.Seconds(), 4/serveTime.Seconds()),
		l.judge(a.Failed == 0, "at once: %d requests failed otherwise%s", a.Failed, because(a.Err)),
	)
}

// degraded is how many decisions were made without the owner, on which a machine that is
// busy with other things has a part: an owner that is late counts as one that is away.
func (l *limitRig) degraded(ctx context.Context) (sum float64, err error) {
	all, err := metricsOf(ctx, l.cluster.Others(nil))
	for _, m := range all {
		for _, result := range []string{"granted", "refused_requests", "refused_tokens", "refused_concurrency"} {
			sum += m.Sum("kvca_limit_decisions_total", "result", "degraded_"+result)
		}
	}
	return sum, err
}

// fair compares a quiet tenant alone with the same beside another one's flood.
func (l *limitRig) fair(ctx context.Context, where, other string) error {
	quiet := l.flood("quiet", l.cluster.Nodes)
	quiet.Rate, quiet.Connections = 20, 16
	alone := l.run(ctx, quiet)
	flood := l.flood(other, l.cluster.Nodes)
	flood.Connections = 128
	var beside, loud *load.Admitted
	var running sync.WaitGroup
	running.Go(func() { loud = l.run(ctx, flood) })
	quiet.Seed++
	beside = l.run(ctx, quiet)
	running.Wait()
	a, b := alone.Latency.Quantile(0.99), beside.Latency.Quantile(0.99)
	ratio := b.Seconds() / a.Seconds()
	l.Printf("  %s: alone p50 %s p99 %s ms (%d requests), beside it p50 %s p99 %s ms (%d); the other was served %.1f a second, p50 %s p99 %s ms, %d refused\n",
		where, millis(alone.Latency.Quantile(0.5)), millis(a), alone.OK, millis(beside.Latency.Quantile(0.5)), millis(b), beside.OK,
		float64(loud.OK)/loud.Elapsed.Seconds(), millis(loud.Latency.Quantile(0.5)), millis(loud.Latency.Quantile(0.99)), loud.Refused)
	return errors.Join(
		l.judge(ratio <= fairRatio, "a quiet tenant %s: p99 %.2f times that of it alone, promised %.1f at most", where, ratio, fairRatio),
		l.judge(alone.Failed+beside.Failed+alone.Refused+beside.Refused == 0, "a quiet tenant %s: %d of its requests were refused, %d failed%s",
			where, alone.Refused+beside.Refused, alone.Failed+beside.Failed, because(errors.Join(alone.Err, beside.Err))),
	)
}

// takeover is how long after an owner's death its keys have a new one, at most.
const takeover = 4 * time.Second

// orphaned kills the owner of a tenant's limit in the middle of a flood.
func (l *limitRig) orphaned(ctx context.Context) error {
	flood := l.flood("orphan", l.cluster.Nodes)
	first := flood // so that the key is known
	first.Warm = 0
	short, cancel := context.WithTimeout(ctx, time.Second)
	first.Run(short)
	cancel()
	owner, err := l.owner(ctx, "orphan")
	if err != nil {
		return err
	}
	flood.Addrs = nodes.Addrs(l.cluster.Others(owner))
	began := time.Now().Add(limitWarm)
	lasts := max(l.lasts, 4*takeover)
	during, stop := context.WithTimeout(ctx, limitWarm+lasts)
	defer stop()
	done := make(chan *load.Admitted, 1)
	go func() { done <- flood.Run(during) }()
	_ = sleep(ctx, limitWarm+lasts/2) // where it is cut short, the result says so
	killed := time.Since(began)
	owner.Kill()
	a := <-done
	rate := func(from, to time.Duration) float64 { return float64(a.Between(from, to)) / (to - from).Seconds() }
	before, between, after := rate(0, killed), rate(killed, killed+takeover), rate(killed+takeover, a.Elapsed)
	l.Printf("  the owner is killed: %.1f a second before, %.1f in the %v after it, %.1f then; through %d nodes, limit 100\n", before, between, takeover, after, len(flood.Addrs))
	return errors.Join(
		l.near(ctx, "before the owner is killed", before, 100, a),
		l.judge(between <= 110 && between >= 50, "while the key has no owner: %.1f a second, limit 100", between),
		l.near(ctx, "with a new owner", after, 100, a),
	)
}

// owner is the node that holds a tenant's limit.
func (l *limitRig) owner(ctx context.Context, name string) (*nodes.Node, error) {
	all, err := nodes.Statuses(ctx, l.cluster.Nodes)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		for _, limit := range s.Limits {
			for _, n := range l.cluster.Nodes {
				if limit.Tenant == name && limit.Owner == n.Place.Name {
					return n, nil
				}
			}
		}
	}
	return nil, fmt.Errorf("no node knows who owns the limit of %s", name)
}
