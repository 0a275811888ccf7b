package kvindex

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"kvca/state"
	"kvca/state/enginehash"
)

func open(t failer, x *Index, o Origin) *Source {
	t.Helper()
	s, err := x.Open(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.SetLive(true)
	return s
}

// stored is a run of blocks of two tokens from the first token on, called by the
// numbers given.
func stored(hashes ...uint64) *Stored {
	e := &Stored{Hashes: hashes, BlockSize: 2}
	for i := range hashes {
		e.Tokens = append(e.Tokens, uint32(i), 7)
	}
	return e
}

func promptOf(e *Stored) *Prompt { return &Prompt{Tokens: append(slices.Clone(e.Tokens), 1)} }

func tokensOf(x *Index, p *Prompt, s state.Slot) int {
	var r Result
	x.Lookup(p, &r)
	m, _ := r.Of(s)
	return m.Tokens
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	if _, err := New(Config{MaxBytes: 5}); err == nil || !strings.Contains(err.Error(), "MaxBytes is 5") {
		t.Error(err)
	}
	x := newIndex(t, MinBytes)
	_, err := x.Open(Origin{Slot: state.MaxSlots, Rank: -1, Named: &enginehash.Chain{}})
	for _, want := range []string{"slot 16384", "rank -1", "block size 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestKeyIsHeldUntilTheLastOfItsNamesGoes(t *testing.T) {
	x := newIndex(t, MinBytes)
	s := open(t, x, Origin{})
	for _, name := range []uint64{10, 20, 20} {
		s.Store(stored(name))
	}
	p := promptOf(stored(10))
	for i, name := range []uint64{20, 10, 20} {
		if got := tokensOf(x, p, 0); got != 2 {
			t.Fatalf("%d tokens before removal %d", got, i)
		}
		if s.Remove([]uint64{name}, GPU) != 0 {
			t.Fatal("unknown")
		}
	}
	if got := tokensOf(x, p, 0); got != 0 || s.Stats().Blocks != 0 {
		t.Errorf("%d tokens after all are removed", got)
	}
	checkIndex(t, x)
}

func TestUnindexedBlocksAreKnownByName(t *testing.T) {
	x := newIndex(t, MinBytes)
	s := open(t, x, Origin{})
	s.Store(stored(1))
	span := stored(2, 3)
	span.Tokens = append(span.Tokens, 5)
	if err := s.Store(span); err != ErrSpan {
		t.Error(err)
	}
	if err := s.Store(&Stored{Hashes: []uint64{4}, BlockSize: 3, Tokens: []uint32{1, 2, 3}}); err != ErrBlockSize {
		t.Error(err)
	}
	for _, size := range []int{-1, MaxBlockSize + 1} {
		if err := s.Store(&Stored{Hashes: []uint64{5}, BlockSize: size, Tokens: []uint32{1}}); err != ErrBlockSize {
			t.Error(size, err)
		}
	}
	child := stored(6)
	child.HasParent, child.Parent = true, 2
	if err := s.Store(child); err != ErrOrphan {
		t.Error(err)
	}
	if n := s.Remove([]uint64{2, 3, 4, 5, 5, 6}, GPU); n != 1 {
		t.Errorf("%d unknown, want that of the orphan", n)
	}
	if st := s.Stats(); st.Blocks != 1 || st.Orphans != 1 || st.Skipped == 0 {
		t.Errorf("%+v", st)
	}
}

func TestEnginesOwnHashesAreMatched(t *testing.T) {
	x := newIndex(t, MinBytes)
	chain, err := enginehash.New("sha256_cbor", "")
	if err != nil {
		t.Fatal(err)
	}
	other, err := enginehash.New("sha256_cbor", "42")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, x, Origin{Slot: 1, Named: chain, BlockSize: 16})
	open(t, x, Origin{Slot: 2, Named: other, BlockSize: 16})
	p := &Prompt{Tokens: make([]uint32, 80), Salt: "s", LoRA: "l"}
	hashes := chain.Append(nil, &enginehash.Prompt{Tokens: p.Tokens, Salt: "s", LoRA: "l"}, 16)
	if err := s.Store(&Stored{Hashes: hashes[:3], HasParent: true, Parent: 99}); err != nil {
		t.Error(err)
	}
	if got := tokensOf(x, p, 1); got != 48 {
		t.Errorf("%d tokens, want 48", got)
	}
	if got := tokensOf(x, p, 2); got != 0 {
		t.Errorf("%d tokens at an engine of another seed", got)
	}
	if err := s.Store(&Stored{Hashes: hashes[3:4], BlockSize: 32}); err != ErrBlockSize {
		t.Error(err)
	}
	s.Forget(p, 20)
	if got := tokensOf(x, p, 1); got != 16 {
		t.Errorf("%d tokens after Forget, want 16", got)
	}
	s.Reset()
	s.Store(&Stored{Hashes: hashes, BlockSize: 16, Tokens: p.Tokens})
	if got := tokensOf(x, p, 1); got != 64 {
		t.Errorf("%d tokens, want 64: the last one is never held", got)
	}
}

func TestNothingIsTakenAtTheBoundAndMemoryIsUsedAgain(t *testing.T) {
	for _, how := range []string{"reset", "close", "remove", "many"} {
		t.Run(how, func(t *testing.T) {
			x := newIndex(t, MinBytes)
			r := rand.New(rand.NewPCG(1, 1))
			first := 0
			for round := range 3 {
				s := open(t, x, Origin{})
				var all []uint64
				err := error(nil)
				for err == nil {
					e := stored(r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64())
					e.Tokens[0] = r.Uint32()
					if err = s.Store(e); err == nil {
						all = append(all, e.Hashes...)
					}
					if st := x.Stats(); st.Bytes > st.MaxBytes {
						t.Fatalf("%d bytes of %d", st.Bytes, st.MaxBytes)
					}
				}
				checkIndex(t, x)
				st := s.Stats()
				if err != ErrFull || !st.Partial || st.Dropped == 0 || x.Stats().Dropped == 0 {
					t.Fatalf("%v, %+v", err, st)
				}
				if round == 0 {
					first = st.Blocks
				}
				if st.Blocks < first*8/10 || st.Blocks < 15000 {
					t.Fatalf("round %d: %d blocks fit, %d at first", round, st.Blocks, first)
				}
				switch how {
				case "reset":
					s.Reset()
					if s.Stats().Partial {
						t.Fatal("an empty source is partial")
					}
				case "remove":
					s.Remove(all, GPU)
				case "many": // sources whose numbers are dead before they hold much
					for range 50 {
						s.Reset()
						s.Store(stored(1, 2))
					}
				}
				s.Close()
			}
		})
	}
}

func TestClosedSourceTakesNothing(t *testing.T) {
	x := newIndex(t, MinBytes)
	s := open(t, x, Origin{Slot: 3})
	s.Store(stored(1, 2))
	s.Close()
	s.Close()
	s.SetLive(true)
	s.Reset()
	s.Put([]Held{{Key: 1, Tiers: 1}}, 2)
	if err := s.Store(stored(1)); err != ErrClosed {
		t.Error(err)
	}
	if page, next := s.Page(0, 10, nil); len(page) != 0 || next != 0 || x.Heard(3) || s.Remove([]uint64{1}, GPU) != 1 {
		t.Error("a closed source holds something")
	}
	if st := x.Stats(); st.Sources != 0 || st.Entries != 0 {
		t.Errorf("%+v", st)
	}
}

func TestNumbersAreUsedAgain(t *testing.T) {
	x := newIndex(t, 8<<20)
	sources := make([]*Source, MaxSources)
	for i := range sources {
		s, err := x.Open(Origin{Slot: state.Slot(i % state.MaxSlots), Rank: i / state.MaxSlots})
		if err != nil {
			t.Fatal(i, err)
		}
		sources[i] = s
	}
	if _, err := x.Open(Origin{}); !errors.Is(err, errNumbers) {
		t.Fatal(err)
	}
	last := sources[MaxSources-1]
	last.SetLive(true)
	p := promptOf(stored(1, 2))
	for range 3 { // there is no other number to give it
		if err := last.Store(stored(1, 2)); err != nil {
			t.Fatal(err)
		}
		if got := tokensOf(x, p, last.Origin().Slot); got != 4 {
			t.Fatalf("%d tokens", got)
		}
		last.Reset()
		if got := tokensOf(x, p, last.Origin().Slot); got != 0 {
			t.Fatalf("%d tokens after Reset", got)
		}
	}
	sources[5].Store(stored(1, 2))
	sources[5].Close()
	s := open(t, x, Origin{Slot: 7})
	if got := tokensOf(x, p, 7); got != 0 || s.number != 5 {
		t.Errorf("number %d holds %d tokens of the source before", s.number, got)
	}
	checkIndex(t, x)
}

// TestCopyByPagesAndChanges pages through a source while it is fed, and sends pages and
// changes under one lock, as a node does for a new peer.
func TestCopyByPagesAndChanges(t *testing.T) {
	x, copied := newIndex(t, 16<<20), newIndex(t, 16<<20)
	s, c := open(t, x, Origin{}), open(t, copied, Origin{})
	var sending sync.Mutex
	joined := false
	s.Watch(func(blockSize int, changes []Held, reset bool) {
		sending.Lock()
		defer sending.Unlock()
		if joined {
			c.Put(changes, blockSize)
		}
	})
	fed := make(chan struct{})
	begin := make(chan struct{})
	go func() {
		defer close(fed)
		r := rand.New(rand.NewPCG(3, 4))
		var held []uint64
		for i := range 6000 {
			if i == 2000 {
				close(begin)
			}
			if len(held) < 2000 || r.IntN(2) == 0 {
				e := stored(r.Uint64())
				e.Tokens[0] = r.Uint32N(5000)
				s.Store(e)
				held = append(held, e.Hashes[0])
				continue
			}
			at := r.IntN(len(held))
			s.Remove(held[at:at+1], GPU)
			held = slices.Delete(held, at, at+1)
		}
	}()
	<-begin
	sending.Lock()
	joined = true
	sending.Unlock()
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		sending.Lock()
		var page []Held
		page, cursor = s.Page(cursor, 50, nil)
		c.Put(page, 2)
		sending.Unlock()
	}
	<-fed
	if got, want := pages(c), pages(s); len(got) != len(want) || len(got) < 500 {
		t.Fatalf("%d keys are copied, want %d", len(got), len(want))
	} else {
		for key, h := range want {
			if got[key] != h {
				t.Fatalf("%+v is copied as %+v", h, got[key])
			}
		}
	}
	checkIndex(t, x)
	checkIndex(t, copied)
}

// TestLookupsWhileEverythingChanges looks up what one source holds all the while,
// and what others come and go with.
func TestLookupsWhileEverythingChanges(t *testing.T) {
	x := newIndex(t, 4<<20)
	steady := open(t, x, Origin{Slot: 1})
	e := &Stored{BlockSize: 2}
	for i := range 300 {
		e.Hashes = append(e.Hashes, uint64(i))
		e.Tokens = append(e.Tokens, uint32(i), 7)
	}
	steady.Store(e)
	p := promptOf(e)
	var feeders, readers sync.WaitGroup
	for f := range 4 {
		feeders.Go(func() { feedWildly(t, x, p, e, f) })
	}
	stop := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			var r Result
			for {
				select {
				case <-stop:
					return
				default:
				}
				x.Lookup(p, &r)
				if m, ok := r.Of(1); !ok || m.Tokens != 600 || m.TierTokens[GPU] != 600 {
					t.Errorf("%+v, %v", m, ok)
					return
				}
				if m, ok := r.Of(2); ok && m.Tokens > 600 {
					t.Errorf("%+v", m)
				}
				x.Heard(2)
			}
		})
	}
	readers.Go(func() {
		for {
			for cursor, more := uint64(0), true; more; more = cursor != 0 {
				found := 0
				var page []Block
				page, cursor = x.List(Filter{Slot: 1, BySlot: true}, cursor, 100, nil)
				if found += len(page); cursor == 0 && found > 300 {
					t.Errorf("%d blocks are listed", found)
				}
			}
			x.Stats()
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	feeders.Wait()
	close(stop)
	readers.Wait()
	checkIndex(t, x)
}

func feedWildly(t *testing.T, x *Index, p *Prompt, e *Stored, f int) {
	r := rand.New(rand.NewPCG(uint64(f), 9))
	s, err := x.Open(Origin{Slot: 2, Rank: f})
	if err != nil {
		t.Error(err)
		return
	}
	for i := range 400 {
		switch r.IntN(12) {
		case 0:
			s.Reset()
		case 1:
			s.Close()
			if s, err = x.Open(Origin{Slot: 2, Rank: f}); err != nil {
				t.Error(err)
				return
			}
		case 2:
			s.Forget(p, r.IntN(600))
		case 3:
			s.Remove(e.Hashes[r.IntN(300):], GPU)
		case 4, 5:
			other := stored(r.Uint64(), r.Uint64(), r.Uint64())
			other.Tokens[0] = r.Uint32()
			s.Store(other)
		default:
			n := 1 + r.IntN(300)
			s.Store(&Stored{Hashes: e.Hashes[:n], Tokens: e.Tokens[:2*n], BlockSize: 2})
		}
		s.SetLive(i%7 != 0)
		s.Page(0, 20, nil)
	}
}

func TestEnginesHashesStayApart(t *testing.T) {
	x := newIndex(t, MinBytes)
	seen := make(map[uint64]uint64)
	r := rand.New(rand.NewPCG(5, 5))
	check := func(hash uint64) {
		mixed := x.mix(hash)
		if other, ok := seen[mixed]; ok && other != hash {
			t.Fatalf("%x and %x are both %x", hash, other, mixed)
		}
		seen[mixed] = hash
	}
	for i := range uint64(200_000) {
		check(i)
		check(i << 32)
		check(r.Uint64())
	}
}

// A holder that has to be told from those it was with takes an entry of its own. Where
// there is no memory for that, it is forgotten, never believed to have more than it has.
func TestHolderLeftInFewerTiersIsForgottenAtTheBound(t *testing.T) {
	x := newIndex(t, MinBytes)
	a, b, c := open(t, x, Origin{}), open(t, x, Origin{Slot: 1}), open(t, x, Origin{Slot: 2})
	told := map[uint64]uint8{}
	b.Watch(func(_ int, changes []Held, _ bool) {
		for _, h := range changes {
			if told[h.Key] = h.Tiers; h.Tiers == 0 {
				delete(told, h.Key)
			}
		}
	})
	all := &Stored{BlockSize: 1}
	fits := func(e Stored) bool {
		for _, s := range []*Source{a, b, c} {
			for _, e.Tier = range []Tier{GPU, CPU} {
				if s.Store(&e) != nil {
					return false
				}
			}
		}
		return true
	}
	for i := uint64(1); fits(Stored{Hashes: []uint64{i}, HasParent: i > 1, Parent: i - 1, BlockSize: 1, Tokens: []uint32{uint32(i)}}); i++ {
		all.Hashes, all.Tokens = append(all.Hashes, i), append(all.Tokens, uint32(i))
	}
	b.Remove([]uint64{uint64(len(all.Hashes)) + 1}, GPU) // what fitted in part
	b.Remove([]uint64{uint64(len(all.Hashes)) + 1}, CPU)
	before := b.Stats()
	if n := b.Remove(all.Hashes, GPU); n != 0 {
		t.Fatalf("%d unknown", n)
	}
	checkIndex(t, x)
	st, held := b.Stats(), pages(b)
	if !st.Partial || st.Dropped == before.Dropped || st.Blocks+int(st.Dropped-before.Dropped) != len(all.Hashes) || st.Blocks != len(held) || len(told) != len(held) {
		t.Fatalf("%+v, %d keys in pages, %d told", st, len(held), len(told))
	}
	for key, h := range held {
		if h.Tiers != 1<<CPU || told[key] != h.Tiers {
			t.Fatalf("key %x is in tiers %b, told as %b", key, h.Tiers, told[key])
		}
	}
	if got := tokensOf(x, &Prompt{Tokens: append(slices.Clone(all.Tokens), 1)}, 2); got != len(all.Hashes) {
		t.Errorf("another holder has %d tokens, want %d", got, len(all.Hashes))
	}
	if n := b.Remove(all.Hashes, CPU); n != 0 || b.Stats().Blocks != 0 {
		t.Errorf("%d unknown, %+v", n, b.Stats())
	}
	checkIndex(t, x)
}
