package kvindex

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"kvca/state"
	"kvca/state/enginehash"
)

// Origin says who a source is.
type Origin struct {
	Slot state.Slot
	// Rank is the data-parallel rank within the backend.
	Rank int
	// Model is for people.
	Model string
	// Named computes the engine's own hashes, for an engine whose events carry no
	// tokens; nil matches on tokens.
	Named *enginehash.Chain
	// BlockSize is the engine's where Named is set. Else it is learned from the
	// first event.
	BlockSize int
}

// What Store says of an event that it has not taken as it is.
var (
	// ErrOrphan: the parent is not known, so nobody can say what the blocks are.
	// Nothing is taken.
	ErrOrphan = errors.New("stored blocks have a parent that was never stored or can't be indexed")
	// ErrSpan: the tokens are not those of the blocks that are named. The blocks are
	// known by name, so that their removal is no error, and not indexed.
	ErrSpan = errors.New("stored blocks have more or fewer tokens than their number and size say")
	// ErrBlockSize: the blocks are not of the source's size, or of none that can be.
	// They are known by name, and not indexed.
	ErrBlockSize = errors.New("stored blocks are of another size than the source's")
	// ErrFull: the index is at its bound of memory. What there was no room for is
	// not taken.
	ErrFull = errors.New("stored blocks don't fit: the precise index is at its bound of memory; raise it")
	// ErrClosed: the source was closed before.
	ErrClosed = errors.New("stored blocks of a source that is closed")
)

// Source is one stream of events: a backend's, or one of its data-parallel ranks.
// Store, Remove, Put, Reset, SetLive and Close are called by its feeder, one at a
// time; all else by anybody. They may be called in any order by anybody, in fact;
// what is lost then is only the order.
type Source struct {
	x      *Index
	origin Origin
	print  uint64 // of origin.Named
	live   bool   // guarded by Index.mu

	blockSize atomic.Int64 // 0: not learned yet
	counts    counts

	// feed is held by whatever changes the source, the watcher's call included. mu
	// guards what Page reads; it is never held while the watcher is called.
	feed    sync.Mutex
	watch   func(blockSize int, changes []Held, reset bool)
	changes []Held
	keyer   keyer
	ahead   ahead

	mu     sync.Mutex
	closed bool
	keyed  bool // fed by Put
	number number
	known  table[known]
	more   map[holding]uint32
}

// known is a block that the source has named: the key, 0 for one that can't be
// indexed, and how many copies there are in each tier. The hash of its entry is
// the engine's, mixed.
type known struct {
	low, high uint32 // key
	copies    copies
}

func (k *known) key() uint64 { return uint64(k.low) | uint64(k.high)<<32 }

func (k *known) setKey(key uint64) { k.low, k.high = uint32(key), uint32(key>>32) }

// holding is a key in a tier. More than one name of the engine's may stand for it,
// where its hashes depend on something that its events don't show; such a key is
// held until all of them are gone.
type holding struct {
	key  uint64
	tier Tier
}

// holdingBytes is what an entry of Source.more costs.
const holdingBytes = 64

// Open makes a source. Lookups see it from SetLive on.
func (x *Index) Open(o Origin) (*Source, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Source{x: x, origin: o, print: printOf(o.Named), known: newTable(x.known)}
	s.keyer.key = x.key
	s.blockSize.Store(s.firstBlockSize())
	n, ok := x.renumber(s)
	if !ok {
		return nil, errNumbers
	}
	s.number = n
	return s, nil
}

func (o *Origin) check() error {
	var faults []error
	if o.Slot >= state.MaxSlots {
		faults = append(faults, fmt.Errorf("open source: slot %d, want less than %d", o.Slot, state.MaxSlots))
	}
	if o.Rank < 0 || o.Rank > 1<<30 {
		faults = append(faults, fmt.Errorf("open source: rank %d, want 0 to %d", o.Rank, 1<<30))
	}
	if o.Named != nil && (o.BlockSize < 1 || o.BlockSize > MaxBlockSize) {
		faults = append(faults, fmt.Errorf("open source: block size %d, want 1 to %d where the engine's own hashes are matched", o.BlockSize, MaxBlockSize))
	}
	return errors.Join(faults...)
}

// firstBlockSize is what is known of the block size before any event.
func (s *Source) firstBlockSize() int64 {
	if s.origin.Named == nil {
		return 0
	}
	return int64(s.origin.BlockSize)
}

// Origin is what the source was opened with.
func (s *Source) Origin() Origin { return s.origin }

// Watch has w called with the net changes of keys after each Store, Remove, Put,
// Reset and Forget that has any, by the goroutine that called that and one
// at a time. The changes are valid during the call; reset means that the source holds
// nothing, whatever was told before. w may call Page and must not call what
// changes the source. To be set before the first event.
func (s *Source) Watch(w func(blockSize int, changes []Held, reset bool)) {
	s.feed.Lock()
	defer s.feed.Unlock()
	s.watch = w
}

// tell is called with feed held and mu not.
func (s *Source) tell() {
	if s.watch != nil && len(s.changes) > 0 {
		s.watch(int(s.blockSize.Load()), s.changes, false)
	}
	if cap(s.changes) > maxScratch {
		s.changes = nil
	}
	s.changes = s.changes[:0]
}

// maxScratch is how many changes a source keeps room for.
const maxScratch = 1 << 12

// SetLive lets lookups see the source, or no longer. It keeps what it holds.
func (s *Source) SetLive(live bool) {
	s.feed.Lock()
	defer s.feed.Unlock()
	s.setLive(live && !s.closed)
}

func (s *Source) setLive(live bool) {
	s.x.mu.Lock()
	changed := s.live != live
	s.live = live
	s.x.mu.Unlock()
	if changed {
		s.x.publish()
	}
}

// Reset makes the source hold nothing, at once whatever it held: the entries of
// its number are void and swept later.
func (s *Source) Reset() {
	s.feed.Lock()
	defer s.feed.Unlock()
	if s.closed {
		return
	}
	s.void()
	s.counts.resets.Add(1)
	if s.watch != nil {
		s.watch(int(s.blockSize.Load()), nil, true)
	}
}

// void empties the source. What it had is left to the sweep, under a number that
// is dead; only where 65,535 numbers are taken is it swept here and now.
func (s *Source) void() {
	s.mu.Lock()
	if old := s.number; s.counts.blocks.Load() > 0 {
		if n, ok := s.x.renumber(s); ok {
			s.number = n
			s.x.retire(old)
		} else {
			s.x.purge(old)
		}
	}
	s.empty()
	s.mu.Unlock()
	s.x.publish()
}

// empty forgets what is known but in the blocks. mu is held.
func (s *Source) empty() {
	s.known.discard()
	s.x.budget.give(int64(len(s.more)) * holdingBytes)
	s.more = nil
	s.keyed = false
	s.counts.blocks.Store(0)
	s.counts.partial.Store(false)
	s.blockSize.Store(s.firstBlockSize())
}

// Close ends the source: it holds nothing, and nothing can be stored any more.
func (s *Source) Close() {
	s.feed.Lock()
	defer s.feed.Unlock()
	if s.closed {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.x.dropped.Add(s.counts.dropped.Load())
	s.x.retire(s.number)
	s.empty()
	s.mu.Unlock()
	s.x.mu.Lock()
	s.live = false
	s.x.mu.Unlock()
	s.x.publish()
}

// mix makes an engine's hash uniform, and never 0. Engines' hashes may be small
// numbers.
func (x *Index) mix(hash uint64) uint64 {
	h := hash ^ x.key.K1
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return never0(h ^ h>>32)
}
