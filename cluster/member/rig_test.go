package member

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"kvca/cluster/simnet"
	"kvca/state/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const port = 7946

// rig is a cluster in one bubble.
type rig struct {
	t   *testing.T
	net *simnet.Network
	all []*node
}

// node is one process.
type node struct {
	*Members
	host *simnet.Host
	reg  *prometheus.Registry
	logs *logs
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	live  []Member // as OnChange gave it last
	facts []Fact
}

// inBubble runs f in virtual time; every node is stopped after it.
func inBubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	virtualtime.Test(t, func(t *testing.T) {
		r := &rig{t: t, net: simnet.New(1)}
		r.net.SetPackets(0, 0, 0, time.Millisecond, time.Millisecond)
		r.net.SetStreams(time.Millisecond, time.Millisecond)
		defer func() {
			r.net.Heal()
			for _, n := range r.all {
				n.stop()
			}
			for _, n := range r.all {
				<-n.done
			}
			time.Sleep(5 * time.Second) // memberlist's last probes end; a bubble that is over has no time
		}()
		f(r)
	})
}

var boots uint64

func goodMeta() Meta {
	boots++
	return Meta{Link: "10.0.0.1:7947", Boot: boots, MinProtocol: 1, MaxProtocol: 2, BlockSize: 512, KeyCheck: 7, Zone: "z"}
}

// start runs a node called name on a host, joining the hosts.
func (r *rig) start(host, name string, join []string, change ...func(*Config)) *node {
	r.t.Helper()
	n := &node{host: r.net.Host(host), reg: prometheus.NewRegistry(), logs: &logs{}, done: make(chan struct{})}
	c := Config{
		Name: name, Cluster: "test/one", Meta: goodMeta(), Resolver: r.net,
		Logger:     slog.New(slog.NewTextHandler(n.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registerer: n.reg, OnChange: n.onChange, OnFact: n.onFact,
	}
	for _, j := range join {
		c.Join = append(c.Join, fmt.Sprintf("%s:%d", j, port))
	}
	for _, f := range change {
		f(&c)
	}
	c.Transport = n.host.Packet(port)
	m, err := New(c)
	if err != nil {
		r.t.Fatal(err)
	}
	n.Members = m
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() {
		defer close(n.done)
		m.Run(ctx)
	}()
	r.all = append(r.all, n)
	return n
}

// form starts n nodes, each joining the first, and waits until they are one.
func (r *rig) form(n int, change ...func(*Config)) []*node {
	r.t.Helper()
	var nodes []*node
	for i := range n {
		name := string(rune('a' + i))
		nodes = append(nodes, r.start(name, name, []string{"a"}, change...))
	}
	r.within(5*time.Second, fmt.Sprintf("%d nodes form a cluster", n), func() bool { return agree(nodes) })
	return nodes
}

// crash ends a node without a farewell.
func (n *node) crash() {
	n.host.Kill()
	n.stop()
}

func (n *node) onChange(live []Member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.live = live
}

func (n *node) onFact(f Fact) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.facts = append(n.facts, f)
}

// names are those of the live, as OnChange said.
func (n *node) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for _, m := range n.live {
		names = append(names, m.Name)
	}
	return names
}

func (n *node) told() []Fact {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.facts)
}

// of gives what n knows of a name.
func (n *node) of(name string) Member {
	for _, m := range n.Members.Members() {
		if m.Name == name {
			return m
		}
	}
	return Member{State: 99}
}

// agree tells whether all see exactly each other.
func agree(nodes []*node) bool {
	var want []string
	for _, n := range nodes {
		want = append(want, n.config.Name)
	}
	slices.Sort(want)
	for _, n := range nodes {
		if !slices.Equal(n.names(), want) {
			return false
		}
	}
	return true
}

// within fails unless ok comes true in d of virtual time; it says how long it took.
func (r *rig) within(d time.Duration, what string, ok func() bool) time.Duration {
	r.t.Helper()
	start := time.Now()
	for {
		synctest.Wait()
		if ok() {
			return time.Since(start)
		}
		if time.Since(start) >= d {
			for _, n := range r.all {
				r.t.Logf("%s sees %v\n%s", n.config.Name, n.names(), n.logs.tail())
			}
			r.t.Fatalf("not within %v: %s", d, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// counter reads a counter or gauge; labels as in "reason=cluster", or "".
func (n *node) counter(name, label string) float64 {
	families, err := n.reg.Gather()
	if err != nil {
		panic(err)
	}
	for _, f := range families {
		if f.GetName() != "kvca_cluster_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			got := ""
			for _, l := range m.GetLabel() {
				got = l.GetName() + "=" + l.GetValue()
			}
			if got == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	panic("no series " + name + " " + label)
}

// logs keeps what a node logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// lines are those that contain every mark.
func (l *logs) lines(marks ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		if !slices.ContainsFunc(marks, func(m string) bool { return !strings.Contains(line, m) }) {
			found = append(found, line)
		}
	}
	return found
}

// tail is how the log ends.
func (l *logs) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buf.Bytes()
	return string(b[max(0, len(b)-6000):])
}
