package ring

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The values are those of other releases: printf %s ID | sha256sum | head -c 16.
func TestKeyNeverChanges(t *testing.T) {
	for id, want := range map[string]uint64{
		"":                      0xe3b0c44298fc1c14,
		"abc":                   0xba7816bf8f01cfea,
		"http://10.0.0.1:8000":  0x3a8c9b14322fb19b,
		"vllm-0.vllm.llm.svc:1": 0xed30de6cc1602443,
	} {
		if got := Key(id); got != want {
			t.Errorf("Key(%q) = %#x, want %#x", id, got, want)
		}
	}
}

func TestOwnersNeverChange(t *testing.T) {
	r := New([]string{"gw-0", "gw-1", "gw-2"})
	var got []string
	for b := range 8 {
		got = append(got, r.Owner(Key(fmt.Sprintf("backend-%d", b))))
	}
	want := []string{"gw-0", "gw-2", "gw-0", "gw-0", "gw-1", "gw-1", "gw-0", "gw-2"}
	if !slices.Equal(got, want) {
		t.Errorf("owners %q, want %q", got, want)
	}
}

func TestEmptyRingHasNoOwner(t *testing.T) {
	r := New(nil)
	if r.Owner(1) != "" || r.Index(1) != -1 || len(r.Names()) != 0 {
		t.Errorf("owner %q, index %d, names %q", r.Owner(1), r.Index(1), r.Names())
	}
}

func TestLoneNodeOwnsAll(t *testing.T) {
	r := New([]string{"only"})
	for key := range uint64(100) {
		if r.Owner(key) != "only" || r.Index(key) != 0 {
			t.Fatalf("key %d belongs to %q", key, r.Owner(key))
		}
	}
}

func TestOwnershipIsEven(t *testing.T) {
	const backends = 4096
	for _, nodes := range []int{2, 3, 8, 16} {
		owned := make([]int, nodes)
		r := New(names(nodes))
		for b := range backends {
			owned[r.Index(Key(fmt.Sprintf("http://10.0.%d.%d:8000", b/256, b%256)))]++
		}
		for i, n := range owned {
			if mean := backends / nodes; n < mean*3/4 || n > mean*5/4 {
				t.Errorf("of %d nodes %s owns %d of %d backends", nodes, r.Names()[i], n, backends)
			}
		}
	}
}

// Whatever the members: order and repetition do not matter, Owner and Index
// agree, and when a node comes only what it wins moves, about its share.
func TestOnlyTheNewcomersBackendsMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfNDistinct(rapid.StringN(1, 12, 40), 1, 20, rapid.ID).Draw(t, "nodes")
		newcomer := rapid.StringN(13, 20, 60).Draw(t, "newcomer")
		shuffled := rapid.Permutation(append(slices.Clone(before), before[0])).Draw(t, "again")
		old, same, grown := New(before), New(shuffled), New(append(slices.Clone(before), newcomer))
		moved := 0
		const backends = 2000
		for b := range uint64(backends) {
			key := Mix(b)
			was, now := old.Owner(key), grown.Owner(key)
			if same.Owner(key) != was || old.Names()[old.Index(key)] != was {
				t.Fatalf("key %#x: %q in one order, %q in another, index %d", key, was, same.Owner(key), old.Index(key))
			}
			if now != was {
				moved++
				if now != newcomer {
					t.Fatalf("key %#x moved from %q to %q, which was there before", key, was, now)
				}
			}
		}
		share := backends / (len(before) + 1)
		if moved < share/2 || moved > share*2 {
			t.Fatalf("%d of %d backends moved to one of %d nodes", moved, backends, len(before)+1)
		}
	})
}

func TestNewDoesNotTouchItsArgument(t *testing.T) {
	given := []string{"b", "a", "b"}
	New(given)
	if !slices.Equal(given, []string{"b", "a", "b"}) {
		t.Errorf("the caller's names became %q", given)
	}
}

func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("gw-%d", i)
	}
	return list
}

func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{3, 8, 64} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			r, key := New(names(n)), uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				key += uint64(r.Index(key)) + 1
			}
		})
	}
}
