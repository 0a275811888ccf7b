package proxy

import (
	"net/http"
	"slices"
	"strconv"

	"kvca/proxy/engine/prompt"
	"kvca/router"
	"kvca/state/kvindex"
)

// IndexSource is one rank of a backend whose cache the precise index is told of, and
// by whom. Its names are part of the interface that scripts rely on.
type IndexSource struct {
	Backend string `json:"backend"`
	Rank    int    `json:"rank"`
	// By is who tells: "events" where this node reads the engine's, "agent NAME", or
	// "node NAME" where a peer passes on what it knows.
	By string `json:"by"`
	// State is connecting, replaying, live or degraded.
	State     string `json:"state"`
	Blocks    int    `json:"blocks"`
	BlockSize int    `json:"block_size"`
	// Problem says what an operator should look at, empty for nothing.
	Problem string            `json:"problem"`
	Batches uint64            `json:"batches"`
	Events  uint64            `json:"events"`
	Gaps    uint64            `json:"gaps"`
	Replays uint64            `json:"replays"`
	Resets  map[string]uint64 `json:"resets"`
	Damaged uint64            `json:"damaged"`
	Dropped uint64            `json:"dropped"`
}

// byEvents is a source that this node reads itself.
const byEvents = "events"

// indexStatus is the index's part of /cluster/status.
type indexStatus struct {
	Status   string        `json:"status"` // disabled, learning, live, or lost
	Entries  int           `json:"entries"`
	Blocks   int           `json:"blocks"`
	Bytes    int64         `json:"bytes"`
	MaxBytes int64         `json:"max_bytes"`
	Dropped  uint64        `json:"dropped"`
	Sources  []IndexSource `json:"sources"`
	// Tokenizers says how the prompts of each model are tokenized, and why not
	// otherwise.
	Tokenizers []tokenizerStatus `json:"tokenizers"`
	// Lost are the models that the index covered within the last hour and of which
	// nobody tells any more.
	Lost []string `json:"lost"`
	// Distrusted are the models that the block map decides for, since predictions
	// did not come true.
	Distrusted []string `json:"distrusted"`
}

// tokenizerStatus says how a model's prompts are tokenized.
type tokenizerStatus struct {
	Model   string            `json:"model"`
	Way     string            `json:"way"` // render, tokenize, llamacpp, tgi or local; empty for none
	Problem string            `json:"problem"`
	Ways    map[string]string `json:"ways"` // the state of each, and why
}

func newTokenizerStatus(r prompt.Report) tokenizerStatus {
	s := tokenizerStatus{Model: r.Model, Way: r.Way, Problem: r.Problem, Ways: make(map[string]string)}
	for _, way := range r.Ways {
		s.Ways[way.Way] = way.State
		if way.Problem != "" {
			s.Ways[way.Way] += ": " + way.Problem
		}
	}
	return s
}

func (a *admin) indexStatus() indexStatus {
	s := indexStatus{Status: "disabled", Sources: []IndexSource{}, Tokenizers: []tokenizerStatus{}, Distrusted: []string{}, Lost: []string{}}
	k := a.Proxy.config().Knowledge
	if k == nil {
		return s
	}
	held := k.cfg.Index.Stats()
	s.Entries, s.Blocks, s.Bytes, s.MaxBytes, s.Dropped = held.Entries, held.Blocks, held.Bytes, held.MaxBytes, held.Dropped
	s.Sources = append(s.Sources, a.Sources()...)
	for _, model := range a.indexModels() {
		s.Tokenizers = append(s.Tokenizers, newTokenizerStatus(k.cfg.Prompts.Report(model)))
	}
	s.Distrusted = append(s.Distrusted, k.credit.banned(k.cfg.Now())...)
	slices.Sort(s.Distrusted)
	if s.Lost = append(s.Lost, k.covers.lost(k.cfg.Now(), a.indexModels())...); len(s.Lost) > 0 {
		slices.Sort(s.Lost)
		s.Status = "lost"
	}
	if covered(a.pool.All()) {
		s.Status = "learning"
	}
	if slices.ContainsFunc(a.pool.All(), func(b *router.Backend) bool { return k.cfg.Index.Heard(b.Slot) }) {
		s.Status = "live"
	}
	return s
}

// kvBlock is one block in one tier.
type kvBlock struct {
	Model       string   `json:"model"`
	Tier        string   `json:"tier"`
	TokenCount  int      `json:"token_count"`
	TokenSample []uint32 `json:"token_sample"`
	Workers     []string `json:"workers"`
}

// Bounds of a page of the index.
const (
	kvPage    = 100
	maxKVPage = 1000
)

// kvIndex shows the blocks of the precise index, page by page: next is the cursor of
// the page that follows, absent on the last one.
func (a *admin) kvIndex(w http.ResponseWriter, r *http.Request) {
	answer := map[string]any{"status": "disabled", "block_count": 0, "models": []string{}, "blocks": []kvBlock{}}
	k := a.Proxy.config().Knowledge
	if k == nil {
		writeJSON(w, http.StatusOK, answer)
		return
	}
	filter, cursor, limit, fault := a.kvQuery(r)
	if fault != nil {
		fault.write(w, openAIStyle, "")
		return
	}
	list, next := k.cfg.Index.List(filter, cursor, limit, nil)
	blocks := []kvBlock{}
	names := a.backendNames()
	for i := range list {
		blocks = append(blocks, rowsOf(&list[i], names, &filter)...)
	}
	s := a.indexStatus()
	answer["status"], answer["block_count"], answer["blocks"], answer["models"] = s.Status, s.Blocks, blocks, a.indexModels()
	if next != 0 {
		answer["next"] = strconv.FormatUint(next, 10)
	}
	writeJSON(w, http.StatusOK, answer)
}

// kvQuery reads the filters model, worker and tier, and cursor and limit.
func (a *admin) kvQuery(r *http.Request) (f kvindex.Filter, cursor uint64, limit int, fault *apiError) {
	q := r.URL.Query()
	f.Model = q.Get("model")
	if worker := q.Get("worker"); worker != "" {
		i := slices.IndexFunc(a.pool.All(), func(b *router.Backend) bool { return b.ID == worker })
		if i < 0 {
			return f, 0, 0, &apiError{status: http.StatusNotFound, code: "backend_not_found", param: "worker", message: "There is no backend " + quoteShort(worker) + "."}
		}
		f.Slot, f.BySlot = a.pool.All()[i].Slot, true
	}
	if tier := q.Get("tier"); tier != "" {
		t, known := kvindex.TierOf(tier)
		if !known {
			return f, 0, 0, badRequest("invalid_tier", "There is no tier "+quoteShort(tier)+": use gpu, cpu, ssd or remote.", "tier")
		}
		f.Tier, f.ByTier = t, true
	}
	limit = kvPage
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxKVPage {
			return f, 0, 0, badRequest("invalid_limit", "The limit "+quoteShort(text)+" can't be: use 1 to "+strconv.Itoa(maxKVPage)+".", "limit")
		}
		limit = n
	}
	if text := q.Get("cursor"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return f, 0, 0, badRequest("invalid_cursor", "The cursor "+quoteShort(text)+" can't be: use the \"next\" of the page before.", "cursor")
		}
		cursor = n
	}
	return f, cursor, limit, nil
}

func (a *admin) backendNames() map[int]string {
	names := make(map[int]string)
	for _, b := range a.pool.All() {
		names[int(b.Slot)] = b.ID
	}
	return names
}

func (a *admin) indexModels() []string {
	models := []string{}
	for _, model := range a.pool.Models() {
		if members, _ := a.pool.Model(model); covered(members) {
			models = append(models, model)
		}
	}
	return models
}

// sampleOf are a block's first tokens, as far as the index has them: ids beyond 21
// bits, which no real vocabulary has, are left out.
func sampleOf(b *kvindex.Block) []uint32 {
	sample := []uint32{}
	for _, token := range b.Sample {
		if token < 1<<21-1 {
			sample = append(sample, token)
		}
	}
	return sample
}

// rowsOf has one row for each tier that holds the block.
func rowsOf(b *kvindex.Block, names map[int]string, f *kvindex.Filter) (rows []kvBlock) {
	for t := range kvindex.Tier(kvindex.Tiers) {
		if f.ByTier && f.Tier != t {
			continue
		}
		row := kvBlock{Tier: t.String(), TokenCount: b.BlockSize, TokenSample: sampleOf(b)}
		for _, h := range b.Holders {
			if name := names[int(h.Origin.Slot)]; h.Tiers&(1<<t) != 0 && name != "" {
				row.Model = h.Origin.Model
				row.Workers = append(row.Workers, name)
			}
		}
		if len(row.Workers) > 0 {
			slices.Sort(row.Workers)
			row.Workers = slices.Compact(row.Workers)
			rows = append(rows, row)
		}
	}
	return rows
}
