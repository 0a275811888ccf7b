package enginehash

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func mustNew(t testing.TB, name, seed string) *Chain {
	t.Helper()
	c, err := New(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tokens(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i * 37 % 151936)
	}
	return all
}

func TestRandomHashesAreRefused(t *testing.T) {
	for name, a := range algorithms {
		_, err := New(name, "")
		if a.fixedSeed != (err == nil) {
			t.Errorf("%s without a seed: error %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "PYTHONHASHSEED") {
			t.Errorf("%s: the error does not say what to do: %v", name, err)
		}
	}
	if _, err := New("builtin", "0"); err == nil || !strings.Contains(err.Error(), "sha256_cbor") {
		t.Errorf("an unknown algorithm: error %v", err)
	}
}

func TestOnlyFullBlocksHaveHashes(t *testing.T) {
	c := mustNew(t, "sha256_cbor", "")
	for _, row := range []struct{ tokens, size, blocks int }{{0, 16, 0}, {15, 16, 0}, {16, 16, 1}, {47, 16, 2}, {5, 0, 0}, {5, -1, 0}, {3, 1, 3}} {
		if got := c.Append(nil, &Prompt{Tokens: tokens(row.tokens)}, row.size); len(got) != row.blocks {
			t.Errorf("%d tokens in blocks of %d: %d hashes, want %d", row.tokens, row.size, len(got), row.blocks)
		}
	}
}

func TestHashesAreAppended(t *testing.T) {
	c := mustNew(t, "xxhash_cbor", "1")
	p := &Prompt{Tokens: tokens(64)}
	alone := c.Append(nil, p, 16)
	if got := c.Append([]uint64{7}, p, 16); got[0] != 7 || !slices.Equal(got[1:], alone) {
		t.Errorf("got %v, want 7 and then %v", got, alone)
	}
}

func TestHashNamesTheWholePrefix(t *testing.T) {
	for name := range algorithms {
		c := mustNew(t, name, "0")
		rapid.Check(t, func(t *rapid.T) {
			size := rapid.IntRange(1, 20).Draw(t, "block size")
			a := rapid.SliceOfN(rapid.Uint32Range(0, 300), 1, 100).Draw(t, "tokens")
			at := rapid.IntRange(0, len(a)-1).Draw(t, "changed")
			b := slices.Clone(a)
			b[at]++
			x, y := c.Append(nil, &Prompt{Tokens: a}, size), c.Append(nil, &Prompt{Tokens: b}, size)
			for i := range x {
				if same := x[i] == y[i]; same != (i < at/size) {
					t.Fatalf("%s: token %d changed: block %d equal: %v", name, at, i, same)
				}
			}
		})
	}
}

func TestExtrasChangeWhatTheyConcern(t *testing.T) {
	plain := Prompt{Tokens: tokens(64)}
	for _, row := range []struct {
		what  string
		set   func(*Prompt)
		first int // block that differs
	}{
		{"salt", func(p *Prompt) { p.Salt = "x" }, 0},
		{"adapter", func(p *Prompt) { p.LoRA = "x" }, 0},
		{"media in the third block", func(p *Prompt) { p.Media = []Media{{ID: "x", Offset: 40, Length: 2}} }, 2},
		{"media to the second block's end", func(p *Prompt) { p.Media = []Media{{ID: "x", Offset: 31, Length: 1}} }, 1},
	} {
		for name := range algorithms {
			for _, c := range []*Chain{mustNew(t, name, "0"), mustNew(t, name, "0").Untagged()} {
				p := plain
				row.set(&p)
				a, b := c.Append(nil, &plain, 16), c.Append(nil, &p, 16)
				for i := range a {
					if same := a[i] == b[i]; same != (i < row.first) {
						t.Errorf("%s, %s: block %d equal: %v", name, row.what, i, same)
					}
				}
			}
		}
	}
}

func TestChainServesManyGoroutines(t *testing.T) {
	c := mustNew(t, "sha256", "")
	want := c.Append(nil, &Prompt{Tokens: tokens(1024), LoRA: "a", Salt: "b"}, 16)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if got := c.Append(nil, &Prompt{Tokens: tokens(1024), LoRA: "a", Salt: "b"}, 16); !slices.Equal(got, want) {
					t.Error("hashes differ between goroutines")
				}
			}
		})
	}
	all.Wait()
}

// The race detector makes pools forget, so a few allocations are let through.
func TestNothingIsAllocatedPerBlock(t *testing.T) {
	p := &Prompt{
		Tokens: tokens(8192), LoRA: "adapter", LoRAPath: "/models/adapter", Salt: "tenant",
		Media: []Media{{ID: "image", Offset: 100, Length: 500}, {ID: "other", Offset: 601, Length: 3}},
	}
	dst := make([]uint64, 0, 512)
	for name := range algorithms {
		c := mustNew(t, name, "0")
		if n := testing.AllocsPerRun(20, func() { dst = c.Append(dst[:0], p, 16) }); n > 8 {
			t.Errorf("%s: %.0f allocations for %d blocks", name, n, len(dst))
		}
	}
}

// One operation is a prompt of 8,192 tokens in 512 blocks.
func BenchmarkAppend(b *testing.B) {
	for _, name := range []string{"sha256_cbor", "sha256", "xxhash_cbor", "xxhash"} {
		b.Run(name, func(b *testing.B) {
			c := mustNew(b, name, "0")
			p := &Prompt{Tokens: tokens(8192), Salt: "tenant"}
			var dst []uint64
			b.ReportAllocs()
			for b.Loop() {
				dst = c.Append(dst[:0], p, 16)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/block")
		})
	}
}
