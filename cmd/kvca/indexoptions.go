package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvca/proxy/backend"
	"kvca/proxy/engine/feed"
	"kvca/proxy/engine/prompt"
	"kvca/state/enginehash"
	"kvca/state/kvindex"
)

// indexSettings say what the precise index is made of.
type indexSettings struct {
	// events say where the KV cache events of each backend are, by its ID; those
	// under everyBackend are of all others.
	events map[string]string
	// newest is the backend that --events was last given for.
	newest string
	// hashes compute the block hashes of engines whose events carry no tokens, by
	// backend; everyBackend as above.
	hashes map[string]blockHashes
	// maxBytes bounds the index's memory.
	maxBytes int64
	// prompts finds tokens; tokenizers are folders by model, that under "" is for
	// every model without its own.
	prompts    prompt.Config
	tokenizers map[string]string
	// loadOnly are the models, "" for all, for which load decides where the index
	// does not know.
	loadOnly map[string]bool
}

// everyBackend stands for all backends that nothing else is said of.
const everyBackend = "*"

// eventsOf says where a backend's events are, empty for nowhere.
func (x *indexSettings) eventsOf(id, own string) string {
	switch {
	case own != "":
		return own
	case x.events[id] != "":
		return x.events[id]
	}
	return x.events[everyBackend]
}

// finish checks what follows from several settings. Its faults are keyed.
func (x *indexSettings) finish(backends []backend.Config) (faults []error) {
	if x.prompts.Preference == prompt.PreferLocal && len(x.tokenizers) == 0 {
		faults = append(faults, errors.New("tokens: local: there is no tokenizer here: want --tokenizer, or auto"))
	}
	for _, b := range backends {
		if b.Events != "" && x.events[b.ID] != "" {
			faults = append(faults, fmt.Errorf("events: %s is given twice, here and by the backend's own key events: keep one", b.ID))
		}
	}
	return faults
}

func indexOptions() []*option {
	return []*option{
		{
			name: "events", value: "ID=ENDPOINT[,REPLAY]", repeats: true,
			usage: "where a backend's KV cache events are, * for every backend: a tcp:// endpoint to connect to, bind:tcp://... to let the engine connect, or auto to ask it",
			set:   addEvents,
		},
		{
			name: "block-hashes", value: "ID=ALGORITHM/TOKENS[/SEED]", repeats: true,
			usage: "how an engine whose events carry no tokens hashes its blocks of so many tokens, * for every backend: sha256_cbor, sha256, xxhash_cbor or xxhash, by its PYTHONHASHSEED",
			set:   addHashes,
		},
		{
			name: "max-kv-index-bytes", value: "SIZE", def: "256MiB", usage: "bound on the memory of what engines say they hold, about 48 bytes a block",
			set: sizeBetween(func(s *settings) *int64 { return &s.index.maxBytes }, 1<<20, 1<<40),
		},
		{
			name: "tokenizer", value: "[MODEL=]DIR", repeats: true,
			usage: "folder with tokenizer.json and the chat template of a model, to tokenize here once a self-test agrees with the engine",
			set:   addTokenizer,
		},
		{
			name: "tokens", value: "WAY", def: string(prompt.Auto),
			usage: "who tokenizes: auto (a --tokenizer that agrees with the engine, else the engine), engine, or local (a --tokenizer, unproven)",
			set: func(s *settings, v string) error {
				s.index.prompts.Preference = prompt.Preference(v)
				return oneOf(v, string(prompt.Auto), string(prompt.PreferEngine), string(prompt.PreferLocal))
			},
		},
		{
			name: "token-budget", value: "DURATION", def: "20ms",
			usage: "how long a request waits for its tokens, or 3 % of its expected prefill where that is more; then the block map decides",
			set:   durationBetween(func(s *settings) *time.Duration { return &s.index.prompts.Budget }, time.Millisecond, 250*time.Millisecond),
		},
		{
			name: "index-fallback", value: "[MODEL=]WAY", repeats: true,
			usage: "what decides where the index does not know: map (the default) or load",
			set:   addFallback,
		},
		{
			name: "weights", value: "NAME=X,...", def: "cache=0.5,tier=0.3,load=0.2", usage: "weights of the policy weighted",
			set: func(s *settings, v string) error {
				w := &s.router.Weights
				return readParts(v, map[string]*float64{"cache": &w.Cache, "tier": &w.Tier, "load": &w.Load})
			},
		},
		{
			name: "min-blocks", value: "N", def: "1", usage: "blocks that must be held before the policy weighted looks at caches",
			set: number(readCount, func(s *settings) *int { return &s.router.Weights.MinBlocks }, 0, 1<<20),
		},
		{
			name: "guard", value: "REQUESTS,FACTOR", shown: "off",
			usage: "let load decide in the policies weighted and two-phase where those that hold the prompt exceed the least-loaded by both",
			set:   setGuard,
		},
		{
			name: "tier-weights", value: "TIER=X,...", def: "gpu=1,cpu=0.7,ssd=0.4,remote=0.2",
			usage: "what a cached block counts for by the tier it lies in",
			set: func(s *settings, v string) error {
				parts := make(map[string]*float64)
				for t := range kvindex.Tier(kvindex.Tiers) {
					parts[t.String()] = &s.router.Tiers[t]
				}
				return readParts(v, parts)
			},
		},
	}
}

// addEvents reads ID=ENDPOINT[,REPLAY]. Variables are cut at commas: what has no ID is
// the replay endpoint of the backend before.
func addEvents(s *settings, v string) error {
	x := &s.index
	if x.newest != "" && !strings.Contains(v, "=") && strings.Contains(v, "://") && !strings.Contains(x.events[x.newest], ",") {
		whole := x.events[x.newest] + "," + v
		_, err := feed.ParseSpec(whole)
		x.events[x.newest] = whole
		return err
	}
	id, spec, found := strings.Cut(v, "=")
	if !found || id == "" || spec == "" {
		return fmt.Errorf("%q: want ID=ENDPOINT, such as gpu-1=tcp://10.0.0.1:5557,tcp://10.0.0.1:5657, or ID=auto", v)
	}
	if x.events[id] != "" {
		return fmt.Errorf("%q: %s is given twice: keep one", v, id)
	}
	x.events[id], x.newest = spec, id
	parsed, err := feed.ParseSpec(spec)
	if err == nil && id == everyBackend && !parsed.Auto {
		err = fmt.Errorf("%q: one endpoint can't be every backend's: want *=auto", v)
	}
	return err
}

// blockHashes is how an engine hashes its blocks.
type blockHashes struct {
	chain  *enginehash.Chain
	tokens int
}

// addHashes reads ID=ALGORITHM/TOKENS[/SEED].
func addHashes(s *settings, v string) error {
	id, text, _ := strings.Cut(v, "=")
	algorithm, rest, _ := strings.Cut(text, "/")
	size, seed, _ := strings.Cut(rest, "/")
	if id == "" || size == "" {
		return fmt.Errorf("%q: want ID=ALGORITHM/TOKENS[/SEED], such as gpu-1=sha256_cbor/16/0", v)
	}
	if _, again := s.index.hashes[id]; again {
		return fmt.Errorf("%q: %s is given twice: keep one", v, id)
	}
	tokens, err := readCount(size)
	if err != nil || tokens < 1 || tokens > kvindex.MaxBlockSize {
		return fmt.Errorf("%q: %q tokens a block: want 1 to %d", v, size, kvindex.MaxBlockSize)
	}
	chain, err := enginehash.New(algorithm, seed)
	s.index.hashes[id] = blockHashes{chain, tokens}
	return err
}

// hashesOf is how a backend's engine hashes its blocks; nil where tokens are matched.
func (x *indexSettings) hashesOf(id string) (*enginehash.Chain, int) {
	h, own := x.hashes[id]
	if !own {
		h = x.hashes[everyBackend]
	}
	return h.chain, h.tokens
}

// modelled cuts [MODEL=]VALUE.
func modelled(v string) (model, value string) {
	if i := strings.Index(v, "="); i > 0 {
		return v[:i], v[i+1:]
	}
	return "", v
}

func addTokenizer(s *settings, v string) error {
	model, dir := modelled(v)
	if dir == "" {
		return fmt.Errorf("%q: want DIR or MODEL=DIR", v)
	}
	if s.index.tokenizers[model] != "" {
		return fmt.Errorf("%q: there is one for that already: keep one", v)
	}
	s.index.tokenizers[model] = dir
	f, err := os.Open(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return fmt.Errorf("%q: can't be read (%w): want a folder with tokenizer.json", v, err)
	}
	return f.Close()
}

func addFallback(s *settings, v string) error {
	model, way := modelled(v)
	if oneOf(way, "map", "load") != nil {
		return fmt.Errorf("%q: want [MODEL=]WAY, where WAY is map or load", v)
	}
	s.index.loadOnly[model] = way == "load"
	return nil
}

// readParts reads NAME=X,NAME=X. What is not named stays as it is.
func readParts(v string, parts map[string]*float64) error {
	for part := range strings.SplitSeq(v, ",") {
		name, text, found := strings.Cut(strings.TrimSpace(part), "=")
		at := parts[name]
		if !found || at == nil {
			return fmt.Errorf("%q: want NAME=X with the names %s", part, strings.Join(slices.Sorted(maps.Keys(parts)), ", "))
		}
		x, err := readFloat(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*at = x
	}
	return nil
}

func setGuard(s *settings, v string) error {
	requests, factor, found := strings.Cut(v, ",")
	if !found {
		return fmt.Errorf("%q: want REQUESTS,FACTOR, such as 32,1.1", v)
	}
	g := &s.router.Guard
	for _, part := range []struct {
		name, text string
		at         *float64
	}{{"REQUESTS", requests, &g.Absolute}, {"FACTOR", factor, &g.Relative}} {
		x, err := readFloat(strings.TrimSpace(part.text))
		if err != nil {
			return fmt.Errorf("%q: %s: %w", v, part.name, err)
		}
		*part.at = x
	}
	return nil
}
