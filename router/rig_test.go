package router

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kvca/state/blockmap"
	"kvca/state/cbr"
	"kvca/state/chain"
	"kvca/state/ledger"
)

// rig is a router with its real ledger and block map, in virtual time.
type rig struct {
	testing.TB
	*Router
	clock   time.Duration
	ledger  *ledger.Ledger
	blocks  *blockmap.Map
	members []*Backend
	random  *rand.Rand
}

func newBench(b *testing.B, backends int) *rig { return newRig(b, backends, nil) }

func newRig(t testing.TB, backends int, edit func(*Config)) *rig {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &rig{TB: t, ledger: ledger.New(), random: rand.New(rand.NewPCG(seed, 1))}
	cfg := DefaultConfig()
	cfg.Now = func() time.Duration { return g.clock }
	cfg.Rand = g.random.Uint64
	if edit != nil {
		edit(&cfg)
	}
	var err error
	if g.blocks, err = blockmap.New(blockmap.Config{MaxBytes: 64 << 20, TTL: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	if g.Router, err = New(cfg, LocalLoads(g.ledger, "here"), g.blocks); err != nil {
		t.Fatal(err)
	}
	for i := range backends {
		b, err := g.Add(name(i))
		if err != nil {
			t.Fatal(err)
		}
		b.SetStanding(Available)
		g.members = append(g.members, b)
	}
	t.Cleanup(g.atRest)
	return g
}

// atRest checks that no test leaves load behind.
func (g *rig) atRest() {
	if n := g.ledger.Held(); n != 0 {
		g.Errorf("%d reservations leaked", n)
	}
	for _, b := range g.members {
		if load := g.ledger.Load(b.Slot); load != (ledger.Load{}) {
			g.Errorf("load %+v left on %s", load, b.ID)
		}
	}
	if n := g.blocks.Stats().Tentative; n != 0 {
		g.Errorf("%d tentative locations leaked", n)
	}
}

// request names messages as the encoder would: each is marked at its end.
func request(phase cbr.Phase, messages ...string) *Request {
	var h chain.Hasher
	h.Reset(chain.Key{K0: 1, K1: 2}, 512)
	for _, m := range messages {
		h.Write([]byte(m))
		h.Mark()
	}
	return &Request{Model: "m", Phase: phase, Chain: h.Hashes(), Marks: h.Marks(), Bytes: h.Bytes()}
}

// text is n bytes that only this seed gives.
func text(seed, n int) string {
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

func (g *rig) route(req *Request) *Ticket {
	g.Helper()
	t, err := g.Route(context.Background(), req, g.members)
	if err != nil {
		g.Fatal(err)
	}
	return t
}

// serve routes a request, lets it succeed and returns who served it.
func (g *rig) serve(req *Request) string {
	g.Helper()
	t := g.route(req)
	t.Begin()
	t.Close()
	return t.Backend.ID
}

// name is a, b, c, ... for the first backends.
func name(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return fmt.Sprintf("backend-%d", i)
}
