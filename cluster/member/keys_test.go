package member

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type fakeKeys struct {
	mu   sync.Mutex
	keys [][]byte // the primary first
}

func (f *fakeKeys) GossipKeys() (primary []byte, all [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) == 0 {
		return nil, nil
	}
	return f.keys[0], f.keys
}

func (f *fakeKeys) set(keys ...[]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys = keys
}

func key(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

func TestKeysRotateWhileRunning(t *testing.T) {
	inBubble(t, func(r *rig) {
		var sources []*fakeKeys
		nodes := r.form(3, func(c *Config) {
			s := &fakeKeys{keys: [][]byte{key(1)}}
			sources = append(sources, s)
			c.Keys = s
		})
		step := func(keys ...[]byte) {
			for _, s := range sources {
				s.set(keys...)
				time.Sleep(5 * time.Second)
				if !agree(nodes) {
					t.Fatalf("the cluster fell apart at %v", keys)
				}
			}
		}
		step(key(1), key(2))
		step(key(2), key(1))
		step(key(2))
		step() // a source that lost its keys changes nothing
		late := r.start("d", "d", []string{"a"}, func(c *Config) { c.Keys = &fakeKeys{keys: [][]byte{key(1)}} })
		time.Sleep(10 * time.Second)
		if !agree(nodes) || !agree([]*node{late}) {
			t.Fatal("a node with the old key came in")
		}
		if nodes[0].counter("refused_total", "reason=gossip_key") < 1 || late.counter("refused_total", "reason=gossip_key") < 1 {
			t.Error("the refusals are not counted on both sides")
		}
		if got := nodes[0].counter("gossip_key_rotations_total", ""); got != 3 {
			t.Errorf("%v rotations counted, want 3", got)
		}
		late.config.Keys.(*fakeKeys).set(key(2))
		nodes = append(nodes, late)
		r.within(10*time.Second, "the right key lets it in", func() bool { return agree(nodes) })
	})
}

func TestNodeWithoutKeysStaysOut(t *testing.T) {
	inBubble(t, func(r *rig) {
		nodes := r.form(2, func(c *Config) { c.Keys = &fakeKeys{keys: [][]byte{key(1)}} })
		plain := r.start("p", "p", []string{"a"})
		time.Sleep(time.Minute)
		if !agree(nodes) || !agree([]*node{plain}) {
			t.Fatal("a node that talks in the clear came in")
		}
		for _, n := range []*node{nodes[0], plain} {
			if got := n.logs.lines("level=WARN", "node refused", "gossip_key"); len(got) != 1 {
				t.Errorf("%s logged it %d times, want once", n.config.Name, len(got))
			}
		}
	})
}

func TestEmptyKeySourceIsRefused(t *testing.T) {
	if _, err := newKeys(&fakeKeys{}); err == nil {
		t.Fatal("no key, and no fault")
	}
	if _, err := newKeys(&fakeKeys{keys: [][]byte{[]byte("short")}}); err == nil {
		t.Fatal("a short key, and no fault")
	}
}

func TestRingHoldsWhatTheSourceGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfNDistinct(rapid.ByteRange(1, 6), 1, 5, rapid.ID)
		source := &fakeKeys{}
		give := func() [][]byte {
			var keys [][]byte
			for _, n := range some.Draw(t, "keys") {
				keys = append(keys, key(n))
			}
			source.set(keys...)
			return keys
		}
		give()
		k, err := newKeys(source)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(t, "rotations") {
			want := give()
			if _, err := k.rotate(); err != nil {
				t.Fatal(err)
			}
			got := k.ring.GetKeys()
			if len(got) != len(want) {
				t.Fatalf("ring has %d keys, want %d", len(got), len(want))
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("key %d differs", i)
				}
			}
		}
	})
}
