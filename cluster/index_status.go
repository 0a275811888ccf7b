package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"kvca/state/kvindex"
)

// Ways by which this node has a source.
const (
	ViaFeed  = "events" // a feed of its own
	ViaAgent = "agent"  // an agent streams to it
	ViaPeer  = "peer"   // another node tells it
)

// SourceStatus is one source of the precise index as this node has it.
type SourceStatus struct {
	Backend string
	Rank    int
	Model   string
	// Via is ViaFeed, ViaAgent or ViaPeer; Teller names the agent or the node.
	Via, Teller string
	// Live is whether lookups see it; Whole is false while a copy is under way.
	Live, Whole bool
	// Problem says why it does not work, as whoever reads it says.
	Problem string
	// Epoch numbers the streams of its teller; 0 for a feed of this node's.
	Epoch uint64
	kvindex.SourceStats
}

// status lists the sources.
func (x *index) status() (list []SourceStatus) {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, pl := range x.places {
		if pl.own != nil {
			list = append(list, pl.own.status())
		}
		if o := pl.chosen; o != nil {
			list = append(list, o.status(x.backend(pl.id)))
		}
	}
	slices.SortFunc(list, func(a, b SourceStatus) int {
		return cmp.Or(strings.Compare(a.Backend, b.Backend), a.Rank-b.Rank, strings.Compare(a.Via, b.Via))
	})
	return list
}

func (f *Feed) status() SourceStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return SourceStatus{
		Backend: f.backend, Rank: f.place.id.Rank, Model: f.model, Via: ViaFeed,
		Live: f.live, Whole: true, Problem: f.problem, SourceStats: f.source.Stats(),
	}
}

// status is of an offer that was chosen. The caller holds index.mu.
func (o *offer) status(backend string) SourceStatus {
	h := &o.hearing
	h.mu.Lock()
	defer h.mu.Unlock()
	s := SourceStatus{
		Backend: backend, Rank: o.place.id.Rank, Model: o.model, Via: ViaPeer, Teller: o.from(),
		Live: o.live && h.copied, Whole: h.copied && !h.lost, Problem: o.problem, Epoch: h.epoch, SourceStats: h.source.Stats(),
	}
	if o.agent != nil {
		s.Via = ViaAgent
	}
	return s
}

// indexMetrics are what is counted about sources on their way.
type indexMetrics struct {
	copies                 struct{ first, again, overflow prometheus.Counter }
	copyBytes, changeBytes prometheus.Counter
	gaps                   prometheus.Counter
	agents                 prometheus.Gauge
	dropped                *prometheus.CounterVec
}

func newIndexMetrics(f promauto.Factory) (m indexMetrics) {
	copies := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_index_copies_total", Help: "Copies of sources of the precise index that peers needed, by cause: first (they asked), again (they missed a part), overflow (a part could not be sent).",
	}, []string{"cause"})
	m.copies.first, m.copies.again, m.copies.overflow = copies.WithLabelValues("first"), copies.WithLabelValues("again"), copies.WithLabelValues("overflow")
	bytes := f.NewCounterVec(prometheus.CounterOpts{
		Name: "kvca_index_told_bytes_total", Help: "Bytes of blocks that peers were told, once for each peer, by kind: copy, changes.",
	}, []string{"kind"})
	m.copyBytes, m.changeBytes = bytes.WithLabelValues("copy"), bytes.WithLabelValues("changes")
	m.gaps = f.NewCounter(prometheus.CounterOpts{Name: "kvca_index_gaps_total", Help: "Gaps found in what peers and agents tell of sources: each needs another copy."})
	m.agents = f.NewGauge(prometheus.GaugeOpts{Name: "kvca_agents", Help: "Agents that are linked with this node."})
	m.dropped = f.NewCounterVec(prometheus.CounterOpts{Name: "kvca_agent_dropped_total", Help: "Frames of agents that were dropped, by reason."}, []string{"reason"})
	for _, reason := range agentDrops {
		m.dropped.WithLabelValues(reason)
	}
	return m
}

// sourceMetrics counts the sources when metrics are gathered.
type sourceMetrics struct {
	x               *index
	sources, blocks *prometheus.Desc
}

func newSourceMetrics(x *index) *sourceMetrics {
	return &sourceMetrics{
		x:       x,
		sources: prometheus.NewDesc("kvca_index_sources", "Sources of the precise index, by how this node has them and whether lookups see them.", []string{"via", "state"}, nil),
		blocks:  prometheus.NewDesc("kvca_index_source_blocks", "Blocks that all sources hold, by how this node has them.", []string{"via"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *sourceMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.sources
	ch <- m.blocks
}

// Collect implements prometheus.Collector.
func (m *sourceMetrics) Collect(ch chan<- prometheus.Metric) {
	live, down, blocks := make(map[string]int), make(map[string]int), make(map[string]int)
	for _, s := range m.x.status() {
		if blocks[s.Via] += s.Blocks; s.Live {
			live[s.Via]++
		} else {
			down[s.Via]++
		}
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for _, via := range []string{ViaFeed, ViaAgent, ViaPeer} {
		gauge(m.sources, live[via], via, "live")
		gauge(m.sources, down[via], via, "down")
		gauge(m.blocks, blocks[via], via)
	}
}
