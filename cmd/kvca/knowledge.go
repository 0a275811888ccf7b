package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"kvca/cluster"
	"kvca/proxy"
	"kvca/proxy/backend"
	"kvca/proxy/engine/localmodel"
	"kvca/proxy/engine/prompt"
	"kvca/proxy/engine/readers"
	"kvca/router"
	"kvca/state"
	"kvca/state/kvindex"
)

// openKnowledge makes the precise index and who asks it. It is there on every node,
// since peers and agents may fill it; nothing is asked of it until somebody does.
func (n *node) openKnowledge() error {
	s := n.settings
	prompts, err := n.openPrompts()
	if err != nil {
		return err
	}
	n.prompts = prompts
	n.knowledge, err = proxy.NewKnowledge(proxy.KnowledgeConfig{
		Index: n.index, Prompts: prompts, Unbelieved: s.index.loadOnly, Logger: n.log, Registerer: n.metrics, Now: s.router.Now,
		Expect: func(b *router.Backend) { n.reader.Expect(b.ID) },
	})
	if err != nil {
		return err
	}
	s.proxy.Knowledge = n.knowledge
	return nil
}

// openReader makes who reads the engines' events.
func (n *node) openReader() {
	n.reader = readers.New(readers.Config{Fleet: n.published, Open: n.openSource, Room: n.hasRoom, Logger: n.log})
}

// hasRoom reports whether the index has room again for what it could not take.
func (n *node) hasRoom() bool {
	s := n.index.Stats()
	return s.Bytes < s.MaxBytes/10*9
}

// openPrompts opens the models' tokenizers; one that can't be read is an error now,
// rather than a fallback for ever.
func (n *node) openPrompts() (*prompt.Service, error) {
	c := n.settings.index.prompts
	models := make(map[string]prompt.Local)
	for model, dir := range n.settings.index.tokenizers {
		m, err := localmodel.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("--tokenizer %s: %w", dir, err)
		}
		models[model] = m
	}
	c.Local = func(model string) prompt.Local {
		if own := models[model]; own != nil {
			return own
		}
		return models[""]
	}
	return prompt.New(c)
}

// published are the backends whose events this node is to read.
func (n *node) published() []readers.Backend {
	var list []readers.Backend
	for _, facts := range n.pool.All() {
		b := n.pool.Of(facts)
		if b == nil {
			continue
		}
		c := b.Config()
		events := n.settings.index.eventsOf(c.ID, c.Events)
		if events == "" || facts.Standing() == router.Starting {
			continue
		}
		host := ""
		if u, err := url.Parse(c.URL); err == nil {
			host = u.Hostname()
		}
		list = append(list, readers.Backend{ID: c.ID, Incarnation: facts, Host: host, Events: events, Do: asker(b)})
	}
	return list
}

// maxPage bounds what an engine may answer to a question of ours.
const maxPage = 1 << 20

// asker asks a backend for a page.
func asker(b *backend.Backend) func(ctx context.Context, method, target string) ([]byte, int, error) {
	return func(ctx context.Context, method, target string) ([]byte, int, error) {
		resp, err := b.Do(ctx, method, target, http.Header{}, nil)
		if err != nil {
			return nil, 0, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
		return body, resp.StatusCode, err
	}
}

// openSource opens a source of the index, which peers are told of where there are any.
func (n *node) openSource(id string, rank int) (readers.Source, error) {
	slot, model, ok := n.slotOf(id)
	if !ok {
		return nil, fmt.Errorf("open source of %s: %w", id, backend.ErrUnknown)
	}
	if n.peers != nil {
		return n.peers.Feed(id, rank, model)
	}
	chain, tokens := n.settings.index.hashesOf(id)
	s, err := n.index.Open(kvindex.Origin{Slot: slot, Rank: rank, Model: model, Named: chain, BlockSize: tokens})
	return ownSource{s}, err
}

// ownSource is one of a node that has no peers.
type ownSource struct{ *kvindex.Source }

func (ownSource) SetProblem(string) {}

// slotOf finds a backend's slot, and the first model that it serves.
func (n *node) slotOf(id string) (slot state.Slot, model string, ok bool) {
	for _, facts := range n.pool.All() {
		if facts.ID != id {
			continue
		}
		if b := n.pool.Of(facts); b != nil {
			if models := b.Status().Models; len(models) > 0 {
				model = models[0]
			}
			return facts.Slot, model, true
		}
	}
	return 0, "", false
}

// know reads the engines' events and keeps the index in use, until ctx ends.
func (n *node) know(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() { n.reader.Run(ctx) })
	work.Go(func() { n.testTokenizers(ctx) })
	tick, settled := time.NewTicker(coverEvery), time.NewTimer(strangersAfter)
	defer tick.Stop()
	defer settled.Stop()
	for {
		n.cover()
		select {
		case <-ctx.Done():
			return
		case <-settled.C:
			n.warnOfStrangers()
		case <-tick.C:
		}
	}
}

// strangersAfter is how long after the start a backend that --events names may be
// missing: peers tell of theirs meanwhile.
const strangersAfter = 10 * time.Second

// warnOfStrangers names what --events was given for and no backend is called: most
// likely a mistake in writing, for which nothing else would be heard of.
func (n *node) warnOfStrangers() {
	known := make(map[string]bool)
	for _, facts := range n.pool.All() {
		known[facts.ID] = true
	}
	var strangers []string
	for id := range n.settings.index.events {
		if id != everyBackend && !known[id] {
			strangers = append(strangers, id)
		}
	}
	if len(strangers) > 0 {
		slices.Sort(strangers)
		n.log.Warn("--events names backends that are not there: nothing is read for them", "backends", strings.Join(strangers, ","))
	}
}

// coverEvery is how soon it is noticed that a peer or an agent tells of a backend, or
// does so no more.
const coverEvery = 500 * time.Millisecond

// cover says which backends the index covers: those whose events this node is to read,
// heard or not, and those that anybody else tells of.
func (n *node) cover() {
	for _, facts := range n.pool.All() {
		if b := n.pool.Of(facts); b != nil {
			c := b.Config()
			facts.SetPrecise(n.settings.index.eventsOf(c.ID, c.Events) != "" || n.index.Heard(facts.Slot))
		}
	}
}

// How often a model's ways to tokenize are tested.
const (
	testLook  = 2 * time.Second
	testEvery = 10 * time.Minute
)

// testTokenizers tests how each covered model is tokenized: as soon as an engine of it
// answers, and now and then after that.
func (n *node) testTokenizers(ctx context.Context) {
	due, said := make(map[string]time.Time), make(map[string]string)
	tick := time.NewTicker(testLook)
	defer tick.Stop()
	for {
		for _, model := range n.pool.Models() {
			if engines := n.enginesOf(model); len(engines) > 0 && time.Now().After(due[model]) {
				due[model] = time.Now().Add(testEvery)
				n.testTokenizer(ctx, model, engines, said)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// enginesOf are the backends of a covered model that answer.
func (n *node) enginesOf(model string) (engines []prompt.Engine) {
	members, _ := n.pool.Model(model)
	if !slices.ContainsFunc(members, (*router.Backend).Precise) {
		return nil
	}
	for _, facts := range members {
		if b := n.pool.Of(facts); b != nil && facts.Standing() == router.Available {
			engines = append(engines, b)
		}
	}
	return engines
}

// testTokenizer tests one model, and says what came of it where that is news.
func (n *node) testTokenizer(ctx context.Context, model string, engines []prompt.Engine, said map[string]string) {
	report := n.prompts.SelfTest(ctx, model, engines)
	text := fmt.Sprintf("%+v", report)
	if ctx.Err() != nil || said[model] == text {
		return
	}
	said[model] = text
	if report.Way == "" {
		n.log.Warn("prompts can't be tokenized: the block map decides", "model", model, "problem", report.Problem, "ways", report.Ways)
		return
	}
	for _, way := range report.Ways {
		if way.Way == "local" && way.State == "mismatch" {
			n.log.Warn("the tokenizer's folder does not match the engine and is not used", "model", model, "problem", way.Problem)
		}
	}
	n.log.Info("prompts are tokenized", "model", model, "way", report.Way, "ways", report.Ways)
}

// sources lists who tells the index what: the engines that this node reads, then what
// peers and agents tell.
func (n *node) sources() []proxy.IndexSource {
	var list []proxy.IndexSource
	scraped := make(map[string]int)
	for _, b := range n.pool.Status() {
		scraped[b.ID] = b.BlockTokens
	}
	for _, s := range n.reader.Status() {
		if told, said := s.Held.BlockSize, scraped[s.Backend]; s.Problem == "" && told > 0 && said > 0 && told != said {
			s.Problem = fmt.Sprintf("its events have blocks of %d tokens, its metrics say %d: right for hybrid models, else the endpoint is another engine's", told, said)
		}
		resets := make(map[string]uint64)
		for reason, count := range s.Feed.Resets {
			if count > 0 {
				resets[reason] = count
			}
		}
		list = append(list, proxy.IndexSource{
			Backend: s.Backend, Rank: s.Rank, By: "events", State: s.Feed.State, Problem: s.Problem,
			Blocks: s.Held.Blocks, BlockSize: s.Held.BlockSize,
			Batches: s.Feed.Batches, Events: s.Feed.Events, Gaps: s.Feed.Gaps, Replays: s.Feed.Replays,
			Resets: resets, Damaged: s.Feed.Damaged, Dropped: s.Feed.Dropped,
		})
	}
	if n.peers == nil {
		return list
	}
	for _, s := range n.peers.Cluster.Status().Sources {
		if s.Via == cluster.ViaFeed {
			continue // told above, with what its feed knows
		}
		list = append(list, proxy.IndexSource{
			Backend: s.Backend, Rank: s.Rank, By: s.Via + " " + s.Teller, State: toldState(&s), Problem: s.Problem,
			Blocks: s.Blocks, BlockSize: s.BlockSize, Resets: map[string]uint64{},
		})
	}
	return list
}

func toldState(s *cluster.SourceStatus) string {
	switch {
	case s.Live:
		return "live"
	case !s.Whole:
		return "replaying"
	}
	return "degraded"
}
