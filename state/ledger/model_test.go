package ledger

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kvca/state"
)

const (
	modelSlots   = state.Slot(3)
	modelHolders = Holder(3) // peers 1 to 3
)

// Any calls in any order, for any holders and with ids that get mixed up between
// them: each sum is always what it should be the sum of, nothing is negative, an
// id counts at most once for its holder, and when all leases are over and this
// node holds nothing, nothing is left.
func TestSumsSurviveAnyOrderOfCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		calls := anyCalls(t, l)
		for range rapid.IntRange(1, 150).Draw(t, "calls") {
			calls[rapid.SampledFrom(callNames(calls)).Draw(t, "call")]()
			check(t, l)
		}
		for h := range modelHolders + 1 {
			l.Drop(h)
		}
		l.Replace(Self, nil, nil)
		for range noteEpochs {
			l.NextEpoch()
		}
		check(t, l)
		for s := range modelSlots {
			for _, role := range []Role{Owner, Learning, Follower} {
				l.SetRole(s, role)
				if got := l.Load(s); got != (Load{}) {
					t.Fatalf("slot %d ends with %+v in role %d", s, got, role)
				}
			}
		}
	})
}

// anyCalls are the ledger's calls with arguments drawn at random.
func anyCalls(t *rapid.T, l *Ledger) map[string]func() {
	id := func() ID { return ID{rapid.Uint64Range(0, 9).Draw(t, "id"), 1} }
	slot := func() state.Slot { return state.Slot(rapid.Uint16Range(0, uint16(modelSlots)-1).Draw(t, "slot")) }
	holder := func() Holder { return Holder(rapid.Uint8Range(0, uint8(modelHolders)).Draw(t, "holder")) }
	number := rapid.OneOf(rapid.Int64Range(-5, 5000), rapid.Int64())
	load := func() Load { return Load{number.Draw(t, "novel"), number.Draw(t, "active")} }
	held := func() Held { return Held{id(), slot(), number.Draw(t, "novel"), rapid.Bool().Draw(t, "prefilled")} }
	return map[string]func(){
		"reserve": func() {
			o := order(id()[0], 0, 1, 2)
			o.Candidates[0].Novel = number.Draw(t, "novel")
			l.ReserveFor(holder(), o, rapid.SampledFrom([]float64{0, 3000, math.Inf(1)}).Draw(t, "bound"))
		},
		"adopt":     func() { l.Adopt(holder(), held()) },
		"prefilled": func() { l.PrefilledFor(holder(), id()) },
		"release":   func() { l.ReleaseFor(holder(), id()) },
		"replace": func() {
			set := rapid.SliceOfN(rapid.Custom(func(*rapid.T) Held { return held() }), 0, 4)
			l.Replace(holder(), set.Draw(t, "held"), []ID{id()})
		},
		"tell":  func() { l.Tell(holder(), slot(), load()) },
		"note":  func() { l.Note(slot(), load()) },
		"epoch": func() { l.NextEpoch() },
		"drop":  func() { l.Drop(holder()) },
		"role":  func() { l.SetRole(slot(), Role(rapid.Uint8Range(0, 2).Draw(t, "role"))) },
		"reset": func() { l.Reset(slot()) },
		"tell changes": func() {
			for _, sub := range l.Changes(nil) {
				if own := l.Own(sub.Slot); sub.Load != own {
					t.Fatalf("slot %d: told %+v of %+v", sub.Slot, sub.Load, own)
				}
			}
		},
	}
}

func callNames(calls map[string]func()) []string {
	var names []string
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// One owner and several holders, each with its own ledger, talk through a channel
// that loses, doubles and reorders. In the end each holder tells its full set
// once, and the owner's books are the union of the holders'.
func TestOwnerEndsWithTheUnionOfItsHoldersSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newFleet(t)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.step()
			check(t, c.owner)
		}
		for len(c.channel) > 0 && rapid.IntRange(0, 9).Draw(t, "more arrives") > 0 {
			c.deliver()
		}
		c.channel = nil
		for _, p := range c.peers {
			p.settle()
		}
		c.compare()
		for _, p := range c.peers {
			p.finish()
		}
		c.compare()
		for s := range modelSlots {
			if got := c.owner.Load(s); got != (Load{}) {
				t.Fatalf("slot %d ends with %+v", s, got)
			}
		}
	})
}

// fleet is an owner, its peers, and the messages between them.
type fleet struct {
	t       *rapid.T
	owner   *Ledger
	peers   []*peer
	channel []func()
	nextID  uint64
}

// peer is a node that routes: its own ledger is the truth about what it holds.
type peer struct {
	*fleet
	h       Holder
	ledger  *Ledger
	ids     []ID // all it ever chose
	pending []ID // asked for, not yet answered
}

func newFleet(t *rapid.T) *fleet {
	c := &fleet{t: t, owner: New()}
	for h := Holder(1); h <= modelHolders; h++ {
		p := &peer{fleet: c, h: h, ledger: New()}
		for s := range modelSlots {
			p.ledger.SetRole(s, Follower)
		}
		c.peers = append(c.peers, p)
	}
	return c
}

func (c *fleet) step() {
	p := rapid.SampledFrom(c.peers).Draw(c.t, "peer")
	switch kind := rapid.IntRange(0, 19).Draw(c.t, "step"); {
	case kind < 4:
		p.ask()
	case kind < 10 && len(c.channel) > 0:
		c.deliver()
	case kind < 11 && len(p.pending) > 0:
		p.decideAlone(p.pending[0])
	case kind < 13:
		p.prefilled(p.anyID())
	case kind < 16:
		p.release(p.anyID())
	case kind < 18:
		p.tellAll()
	case kind < 19:
		p.tellChanges()
	default:
		c.owner.Drop(p.h)
	}
}

// send puts a message into the channel: never, once or twice.
func (c *fleet) send(message func()) {
	for range rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(c.t, "copies") {
		c.channel = append(c.channel, message)
	}
}

// deliver lets any one of the messages arrive.
func (c *fleet) deliver() {
	i := rapid.IntRange(0, len(c.channel)-1).Draw(c.t, "message")
	message := c.channel[i]
	c.channel = slices.Delete(c.channel, i, i+1)
	message()
}

func (p *peer) anyID() ID {
	if len(p.ids) == 0 {
		return ID{0, uint64(p.h)}
	}
	return rapid.SampledFrom(p.ids).Draw(p.t, "id")
}

func (p *peer) newOrder(id ID) *Order {
	o := order(id[0], 0, 1, 2)
	o.ID = id
	return o
}

// ask sends a reservation to the owner, whose answer may come late or never.
func (p *peer) ask() {
	p.nextID++
	id := ID{p.nextID, uint64(p.h)}
	p.ids, p.pending = append(p.ids, id), append(p.pending, id)
	bound := rapid.SampledFrom([]float64{600, math.Inf(1)}).Draw(p.t, "bound")
	p.send(func() {
		o := p.newOrder(id)
		g, ok := p.owner.ReserveFor(p.h, o, bound)
		if !ok {
			return
		}
		s := o.Candidates[g.Index].Slot
		others := p.owner.Others(p.h, s)
		p.send(func() { p.answered(id, s, others) })
	})
}

// answered takes a grant for what it says, if it still waits for it.
func (p *peer) answered(id ID, s state.Slot, others Load) {
	if !p.stopWaiting(id) {
		return
	}
	p.ledger.Note(s, others)
	if !p.ledger.Adopt(Self, Held{ID: id, Slot: s, Novel: 1000}) {
		p.send(func() { p.owner.ReleaseFor(p.h, id) })
	}
}

// decideAlone gives up waiting and tells the owner what it chose itself.
func (p *peer) decideAlone(id ID) {
	p.stopWaiting(id)
	o := p.newOrder(id)
	g := p.ledger.Reserve(o)
	d := Held{ID: id, Slot: o.Candidates[g.Index].Slot, Novel: 1000}
	p.send(func() { p.owner.Adopt(p.h, d) })
}

func (p *peer) stopWaiting(id ID) bool {
	i := slices.Index(p.pending, id)
	if i >= 0 {
		p.pending = slices.Delete(p.pending, i, i+1)
	}
	return i >= 0
}

func (p *peer) prefilled(id ID) {
	if p.ledger.Prefilled(id) {
		p.send(func() { p.owner.PrefilledFor(p.h, id) })
	}
}

// release may come while the grant is still on its way: the client has left.
func (p *peer) release(id ID) {
	p.ledger.Release(id)
	p.send(func() { p.owner.ReleaseFor(p.h, id) })
}

func (p *peer) tellAll() {
	held, pending := p.ledger.Holds(Self, nil, nil), slices.Clone(p.pending)
	p.send(func() { p.owner.Replace(p.h, held, pending) })
}

func (p *peer) tellChanges() {
	p.ledger.NextEpoch()
	subtotals := p.ledger.Changes(nil)
	p.send(func() {
		for _, sub := range subtotals {
			p.owner.Tell(p.h, sub.Slot, sub.Load)
		}
	})
}

// settle waits for nothing more and tells the owner all, without loss.
func (p *peer) settle() {
	p.pending = nil
	p.owner.Replace(p.h, p.ledger.Holds(Self, nil, nil), nil)
	for s := range modelSlots {
		p.owner.Tell(p.h, s, p.ledger.Own(s))
	}
}

// finish ends all requests, and every release is lost.
func (p *peer) finish() {
	for _, id := range p.ids {
		p.ledger.Release(id)
	}
	p.settle()
}

// compare holds the owner's books against the holders' own.
func (c *fleet) compare() {
	check(c.t, c.owner)
	for _, p := range c.peers {
		truth, books := sorted(p.ledger.Holds(Self, nil, nil)), sorted(c.owner.Holds(p.h, nil, nil))
		if !slices.Equal(truth, books) {
			c.t.Fatalf("peer %d holds %+v, the owner has %+v", p.h, truth, books)
		}
	}
	for s := range modelSlots {
		var union Load
		for _, p := range c.peers {
			union = union.plus(p.ledger.Own(s))
		}
		for _, role := range []Role{Learning, Follower, Owner} {
			c.owner.SetRole(s, role)
			if got := c.owner.Load(s); got != union {
				c.t.Fatalf("slot %d in role %d: the owner sees %+v, its holders hold %+v", s, role, got, union)
			}
		}
	}
}

func sorted(held []Held) []Held {
	slices.SortFunc(held, func(a, b Held) int { return cmp.Compare(a.ID[0], b.ID[0]) })
	return held
}
