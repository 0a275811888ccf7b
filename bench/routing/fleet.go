package routing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/ledger"
)

// Config is what is measured.
type Config struct {
	Backends int
	// Blocks is how many blocks the map holds at first.
	Blocks int
	// Chain is the length of a request's chain in blocks, at least 8.
	Chain int
	// Decisions is how many are timed of each kind, Goroutines how many make
	// them at the same time.
	Decisions, Goroutines int
	Seed                  uint64
}

// Validate returns all faults at once.
func (c Config) Validate() error {
	var faults []error
	if c.Backends < 1 || c.Backends > 16_384 {
		faults = append(faults, fmt.Errorf("backends is %d, want 1 to 16384", c.Backends))
	}
	if c.Chain < 8 || c.Chain > 100_000 {
		faults = append(faults, fmt.Errorf("chain is %d blocks, want 8 to 100000", c.Chain))
	}
	if c.Blocks < c.Chain {
		faults = append(faults, fmt.Errorf("blocks is %d, want at least the chain's %d", c.Blocks, c.Chain))
	}
	if c.Decisions < 1 || c.Goroutines < 1 {
		faults = append(faults, fmt.Errorf("decisions is %d and goroutines %d, want at least 1 of each", c.Decisions, c.Goroutines))
	}
	return errors.Join(faults...)
}

// locationBytes bounds the map so generously that nothing is evicted: what is
// timed are decisions on a map of the size that was asked for.
const locationBytes = 160

// Fleet is a router with a filled map.
type Fleet struct {
	cfg       Config
	router    *router.Router
	ledger    *ledger.Ledger
	locations *blockmap.Map
	members   []*router.Backend
	// chains are the conversations that the map knows, hot is the prefix that
	// every backend holds.
	chains [][]uint64
	hot    []uint64
}

// New makes a router with its defaults and fills its map.
func New(cfg Config) (*Fleet, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure routing benchmark: %w", err)
	}
	most := cfg.Blocks + cfg.Chain/4*cfg.Backends + 3*cfg.Decisions*cfg.Chain*maxRounds
	locations, err := blockmap.New(blockmap.Config{MaxBytes: max(int64(most)*locationBytes, blockmap.MinBytes), TTL: time.Hour})
	if err != nil {
		return nil, fmt.Errorf("make block map: %w", err)
	}
	f := &Fleet{cfg: cfg, locations: locations, ledger: ledger.New()}
	rc := router.DefaultConfig()
	rc.Registerer = prometheus.NewRegistry()
	if f.router, err = router.New(rc, router.LocalLoads(f.ledger, "node"), locations); err != nil {
		return nil, fmt.Errorf("make router: %w", err)
	}
	return f, f.fill(rc.Now)
}

func (f *Fleet) fill(now func() time.Duration) error {
	r := rand.New(rand.NewPCG(f.cfg.Seed, 0))
	for i := range f.cfg.Backends {
		b, err := f.router.Add("backend-" + strconv.Itoa(i))
		if err != nil {
			return err
		}
		b.SetStanding(router.Available)
		f.members = append(f.members, b)
	}
	for range f.cfg.Blocks / f.cfg.Chain {
		chain := hashes(r, f.cfg.Chain)
		b := f.members[r.IntN(len(f.members))]
		f.locations.Learn(b.Slot, f.locations.Generation(b.Slot), chain, now())
		f.chains = append(f.chains, chain)
	}
	f.hot = hashes(r, f.cfg.Chain/4)
	for _, b := range f.members {
		f.locations.Learn(b.Slot, f.locations.Generation(b.Slot), f.hot, now())
	}
	return nil
}

// Blocks is how many blocks the map holds now, and how many it has evicted.
func (f *Fleet) Blocks() (blocks int, evicted uint64) {
	s := f.locations.Stats()
	return s.Blocks, s.Evicted
}

// Held is the number of live reservations; 0 between two measurements.
func (f *Fleet) Held() int { return f.ledger.Held() }

// hashes are n random block names; the router sees no more of a prompt.
func hashes(r *rand.Rand, n int) []uint64 {
	chain := make([]uint64, n)
	for i := range chain {
		chain[i] = r.Uint64()
	}
	return chain
}
