package blockmap

import (
	"testing"
	"time"

	"kvca/state"
)

// chained makes a map of 1 Mi blocks in conversations of 64, on eight backends.
func chained(b *testing.B) *Map {
	m := roomy(b)
	r := seeded()
	for i := range 1 << 20 / 64 {
		learn(m, state.Slot(i%8), random(r, 64), time.Duration(i)*50*time.Microsecond)
	}
	return m
}

// roomy has room for 1 Mi blocks below nine tenths.
func roomy(b *testing.B) *Map {
	m, err := New(Config{MaxBytes: 96 << 20, TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// BenchmarkSnapshot fills an empty map with another's 1 Mi locations.
func BenchmarkSnapshot(b *testing.B) {
	from := chained(b)
	now := 2 * time.Second
	b.ReportAllocs()
	for b.Loop() {
		to := roomy(b)
		n := 0
		for s := range state.Slot(8) {
			n += pull(to, from, s, nil, now, 512)
		}
		if n != 1<<20 {
			b.Fatal(n)
		}
	}
}

// BenchmarkPage reads 1 Mi locations.
func BenchmarkPage(b *testing.B) {
	m := chained(b)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for s := range state.Slot(8) {
			var c Cursor
			for !m.Page(&c, s, nil, time.Hour, 2*time.Second, 512, func(_, _ uint64, _ time.Duration) { n++ }) {
			}
		}
		if n != 1<<20 {
			b.Fatal(n)
		}
	}
}

// BenchmarkMergeFollowUp merges the next turn of a conversation: a new suffix of
// three blocks behind 60 that are known.
func BenchmarkMergeFollowUp(b *testing.B) {
	m, chains := full(b, 60)
	r := seeded()
	suffix := make([]uint64, 3)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range suffix {
			suffix[j] = r.Uint64()
		}
		k := i * 7919 % len(chains)
		m.Merge(state.Slot(k%1000), 0, Run{Parent: chains[k][59], Hashes: suffix, Idle: 20 * time.Millisecond}, true, time.Minute)
	}
}

// BenchmarkMergeRefresh merges a conversation that has been used again.
func BenchmarkMergeRefresh(b *testing.B) {
	m, chains := full(b, 64)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		k := i * 7919 % len(chains)
		m.Merge(state.Slot(k%1000), 0, Run{Parent: chains[k][62], Hashes: chains[k][63:]}, true, time.Minute)
	}
}

func BenchmarkDigest(b *testing.B) {
	m, _ := full(b, 64)
	var d Digest
	b.ReportAllocs()
	for b.Loop() {
		m.Digest(&d, time.Minute, keyed(time.Hour))
	}
}

// News of prompts that are new, in a map that grows: what a node does for each
// request of the others.
func BenchmarkMergeNew(b *testing.B) {
	m, err := New(Config{MaxBytes: 96 << 20, TTL: 10 * time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	hashes := make([]uint64, 64)
	next := uint64(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for k := range hashes {
			next += 0x9e3779b97f4a7c15
			x := next
			x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>27) * 0x94d049bb133111eb
			hashes[k] = x ^ x>>31
		}
		m.Merge(state.Slot(i%8), 0, Run{Hashes: hashes}, true, time.Duration(i)*time.Millisecond)
	}
}
