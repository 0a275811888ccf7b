package blockmap

import (
	"testing"
	"time"
)

func TestLearnTellsWhatIsNew(t *testing.T) {
	m := testMap(t, 100*tick)
	chain := random(seeded(), 200)
	for _, c := range []struct {
		name  string
		gen   uint64
		chain []uint64
		at    time.Duration
		want  News
	}{
		{"all", 0, chain[:90], 0, News{Added: 90, First: 0, Len: 90, OK: true}},
		{"a suffix", 0, chain[:150], 10 * tick, News{Added: 60, First: 90, Len: 150, OK: true}},
		{"nothing", 0, chain[:150], 30 * tick, News{First: 150, Len: 150, Idle: 20 * tick, OK: true}},
		{"a prefix", 0, chain[:80], 60 * tick, News{First: 80, Len: 80, Idle: 30 * tick, OK: true}},
		{"an expired suffix", 0, chain[:150], 140 * tick, News{Added: 70, First: 80, Len: 150, OK: true}},
		{"an empty chain", 0, nil, 140 * tick, News{OK: true}},
		{"another generation", 1, chain, 140 * tick, News{}},
		{"an empty chain of another generation", 1, nil, 140 * tick, News{}},
	} {
		if got := m.Learn(1, c.gen, c.chain, c.at); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	m.SetMirror(1, 160)
	if got := m.Learn(1, 0, chain, 141*tick); got.First != 150 || got.Len != 160 || got.Added < 10 || !got.OK {
		t.Errorf("a chain beyond the mirror: got %+v", got)
	}
	ensure(t, m)
}
