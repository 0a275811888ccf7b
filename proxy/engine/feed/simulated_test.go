package feed

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// simEngine is what an engine is to a feed: numbered batches, a ring of the last
// ones, and the blocks that it holds.
type simEngine struct {
	life  int
	next  uint64
	holes int
	ring  []batch
	room  int
	held  map[int]uint64 // block: the batch that announced it
}

// publish announces changes: "+3 -4", or "clear".
func (e *simEngine) publish(text string) batch {
	b := newBatch(e.next, fmt.Appendf(nil, "life %d batch %d: %s", e.life, e.next, text))
	for word := range strings.FieldsSeq(text) {
		block, _ := strconv.Atoi(word[1:])
		switch word[0] {
		case '+':
			e.held[block] = e.next
		case '-':
			delete(e.held, block)
		case 'c':
			clear(e.held)
		}
	}
	e.ring = append(e.ring, b)
	e.ring = e.ring[max(0, len(e.ring)-e.room):]
	e.next++
	return b
}

// from is what a replay brings.
func (e *simEngine) from(seq uint64) []batch {
	i := slices.IndexFunc(e.ring, func(b batch) bool { return b.seq >= seq })
	if i < 0 {
		return nil
	}
	return slices.Clone(e.ring[i:])
}

// world is an engine, a channel that harms what it carries, and a machine with its
// sink.
type world struct {
	t       *rapid.T
	m       *machine
	now     time.Duration
	engine  simEngine
	up      bool
	wire    []batch // sent, not arrived
	maimed  bool    // something was lost that no replay brings back
	unseen  bool    // so was the last batch of this connection, which only a later one could show
	replays struct {
		id      uint64
		answers []batch
		open    bool
	}

	// The sink.
	blocks map[int]bool
	since  uint64 // batch after the last reset
	resets int
	lifeOf int // the process whose batch was applied last
	isLive bool
	ahead  bool // since is to be set
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, blocks: map[int]bool{}, engine: simEngine{held: map[int]uint64{}}}
	w.engine.room = rapid.SampledFrom([]int{1, 4, 10_000}).Draw(t, "ring")
	c := &Config{Endpoint: "tcp://engine:5557", MaxPending: rapid.SampledFrom([]int{500, 1 << 20}).Draw(t, "pending")}
	if rapid.Bool().Draw(t, "replay") {
		c.Replay = "tcp://engine:5657"
	}
	c.setDefaults()
	w.m = newMachine(c, w, 0)
	w.m.trust = 1 // the channel loses pieces of any replay
	w.ahead, w.since = true, math.MaxUint64
	return w
}

func (w *world) apply(payload []byte) (outcome, error) {
	text := string(payload)
	var life int
	var seq uint64
	if _, err := fmt.Sscanf(text, "life %d batch %d:", &life, &seq); err != nil {
		w.t.Fatalf("payload %q: %v", text, err)
	}
	w.lifeOf = life
	if strings.HasSuffix(text, "bad") {
		return damaged, errors.New("bad")
	}
	if w.ahead {
		w.ahead, w.since = false, seq
	}
	_, events, _ := strings.Cut(text, ": ")
	result := taken
	for word := range strings.FieldsSeq(events) {
		block, _ := strconv.Atoi(word[1:])
		switch word[0] {
		case '+':
			w.blocks[block] = true
		case '-':
			delete(w.blocks, block)
		case 'c':
			clear(w.blocks)
			result = cleared
		}
	}
	return result, nil
}

func (w *world) reset(Reason) {
	clear(w.blocks)
	w.resets++
	w.ahead, w.since = true, math.MaxUint64
}

func (w *world) setLive(live bool) { w.isLive = live }

func (w *world) ask(id, from uint64) {
	w.replays.id, w.replays.answers, w.replays.open = id, w.engine.from(from), true
}

func (w *world) hangUp() { w.replays.open = false }

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"publish": func(t *rapid.T) { w.publish(w.events(t)) },
		"hole": func(t *rapid.T) { // the number is used up, nobody ever sees the batch
			if w.engine.holes++; w.engine.holes > maxTries {
				return // of a ring of holes not all is asked for
			}
			w.unseen = true
			w.engine.publish(w.events(t))
			w.engine.ring = w.engine.ring[:len(w.engine.ring)-1]
			w.maimed = true
		},
		"unreadable": func(t *rapid.T) {
			w.publish(w.events(t) + " bad")
			w.maimed = true
		},
		"deliver": func(t *rapid.T) { w.deliver(rapid.IntRange(1, 5).Draw(t, "batches")) },
		"lose": func(t *rapid.T) {
			if len(w.wire) > 0 {
				i := rapid.IntRange(0, len(w.wire)-1).Draw(t, "which")
				w.unseen = w.unseen || i == len(w.wire)-1
				w.wire = slices.Delete(w.wire, i, i+1)
			}
		},
		"double": func(t *rapid.T) {
			if len(w.wire) > 0 {
				i := rapid.IntRange(0, len(w.wire)-1).Draw(t, "which")
				w.wire = slices.Insert(w.wire, i, w.wire[i])
			}
		},
		"swap": func(t *rapid.T) {
			if len(w.wire) > 1 {
				i := rapid.IntRange(0, len(w.wire)-2).Draw(t, "which")
				w.wire[i], w.wire[i+1] = w.wire[i+1], w.wire[i]
			}
		},
		"cut":     func(*rapid.T) { w.cut() },
		"connect": func(*rapid.T) { w.connect() },
		"restart": func(*rapid.T) { w.restart() },
		"own loss": func(*rapid.T) {
			if w.up && len(w.wire) > 0 {
				w.wire = w.wire[1:]
				w.m.lost(w.now)
			}
		},
		"replay": func(t *rapid.T) { w.answer(rapid.IntRange(1, 20).Draw(t, "batches")) },
		"replay loses": func(t *rapid.T) {
			if n := len(w.replays.answers); n > 1 {
				i := rapid.IntRange(1, n-1).Draw(t, "which")
				w.replays.answers = slices.Delete(w.replays.answers, i, i+1)
			}
		},
		"resync":        func(*rapid.T) { w.m.resync() },
		"replay breaks": func(*rapid.T) { w.m.failed(w.now, w.replays.id, errors.New("cut")) },
		"wait":          func(t *rapid.T) { w.wait(time.Duration(rapid.IntRange(1, 6000).Draw(t, "ms")) * time.Millisecond) },
	}
}

func (w *world) events(t *rapid.T) string {
	if rapid.IntRange(0, 30).Draw(t, "clear") == 0 {
		return "clear"
	}
	var words []string
	for range rapid.IntRange(1, 3).Draw(t, "events") {
		block := rapid.IntRange(0, 30).Draw(t, "block")
		if _, held := w.engine.held[block]; held {
			words = append(words, fmt.Sprint("-", block))
		} else {
			words = append(words, fmt.Sprint("+", block))
		}
		if len(words) == 2 && words[0][1:] == words[1][1:] {
			words = words[:1] // an engine names a block once
		}
		if len(words) == 3 && (words[0][1:] == words[2][1:] || words[1][1:] == words[2][1:]) {
			words = words[:2]
		}
	}
	return strings.Join(words, " ")
}

func (w *world) publish(events string) {
	b := w.engine.publish(events)
	w.unseen = false
	if w.up {
		w.wire = append(w.wire, b)
	}
}

func (w *world) deliver(n int) {
	for ; n > 0 && w.up && len(w.wire) > 0; n-- {
		b := w.wire[0]
		w.wire = w.wire[1:]
		if w.mistakable(b) {
			continue
		}
		w.m.arrived(w.now, b)
	}
}

// mistakable reports whether b is of another process than the batch applied last,
// has the number that would have come next, and nobody can be asked: that can't be
// told.
func (w *world) mistakable(b batch) bool {
	return w.m.resumed && b.seq == w.m.next && w.lifeOf != w.engine.life
}

func (w *world) cut() {
	w.up, w.wire = false, nil
	w.m.disconnected(w.now, errors.New("cut"))
}

func (w *world) connect() {
	if !w.up {
		w.up = true
		w.unseen = w.engine.next > 0 && len(w.engine.from(w.engine.next-1)) == 0
		w.m.connected(w.now)
	}
}

func (w *world) restart() {
	w.cut()
	w.replays.answers = nil
	w.engine = simEngine{life: w.engine.life + 1, room: w.engine.room, held: map[int]uint64{}}
	w.maimed = false
}

func (w *world) answer(n int) {
	for ; n > 0 && w.replays.open; n-- {
		id := w.replays.id
		if len(w.replays.answers) == 0 {
			w.replays.open = false
			w.m.ended(w.now, id)
			continue
		}
		b := w.replays.answers[0]
		w.replays.answers = w.replays.answers[1:]
		w.m.replayed(w.now, id, b)
	}
}

func (w *world) wait(d time.Duration) {
	for until := w.now + d; ; {
		next := w.m.deadline()
		if next == 0 || next > until {
			w.now = until
			return
		}
		w.now = max(w.now, next)
		w.m.tick(w.now)
	}
}

// calm lets the channel carry all, until nothing is left to settle. The engine may
// have fallen silent.
func (w *world) calm(silent bool) {
	w.connect()
	for range 100 {
		if !silent {
			w.publish("")
		}
		w.deliver(len(w.wire))
		w.answer(1 << 20)
		w.wait(time.Second)
	}
}

func (w *world) check() {
	t, held := w.t, w.engine.held
	if w.m.mode != live || !w.isLive || w.m.stale {
		t.Fatalf("after calm: mode %d, live %t, stale %t, want live and not stale", w.m.mode, w.isLive, w.m.stale)
	}
	if w.m.next != w.engine.next {
		t.Fatalf("batch %d comes next, want %d", w.m.next, w.engine.next)
	}
	for block := range w.blocks {
		if _, ok := held[block]; !ok {
			t.Fatalf("block %d is believed in, and the engine does not hold it", block)
		}
	}
	for block, seq := range held {
		if seq >= w.since && !w.blocks[block] {
			t.Fatalf("block %d was announced in batch %d, after all was forgotten before %d, and is not known", block, seq, w.since)
		}
	}
	healable := w.m.canReplay() && w.engine.room > 1000 && !w.maimed
	if (healable || w.resets == 0 && w.since == 0) && len(w.blocks) != len(held) {
		t.Fatalf("known %v, want %v", slices.Sorted(maps.Keys(w.blocks)), slices.Sorted(maps.Keys(held)))
	}
	if healable && w.m.problem() != "" {
		t.Fatalf("all is known, and there is a problem: %s", w.m.problem())
	}
}

// Whatever the channel did, once it is calm a sink holds what its engine holds, or
// was reset and holds what was announced since; never a block too many.
func TestStateIsRightOrReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(w.actions())
		w.calm(rapid.Bool().Draw(t, "silent") && w.m.canReplay() && !w.unseen)
		w.check()
	})
}
