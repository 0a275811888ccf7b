package member

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kvca/state"
)

func anyFact() *rapid.Generator[Fact] {
	return rapid.Custom(func(t *rapid.T) Fact {
		return Fact{
			Kind:    FactKind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Subject: rapid.StringMatching(`[ab]{1,2}`).Draw(t, "subject"),
			Version: rapid.Uint64Range(0, 3).Draw(t, "version"),
			Value:   rapid.Uint64Range(0, 3).Draw(t, "value"),
			Origin:  rapid.StringMatching(`[xy]?`).Draw(t, "origin"),
			Text:    rapid.StringMatching(`[t]?`).Draw(t, "text"),
		}
	})
}

func merged(facts ...[]Fact) []Fact {
	var table Table
	for _, list := range facts {
		for _, f := range list {
			table.Merge(f)
		}
	}
	return table.All()
}

func TestMergingFactsIsIdempotentCommutativeAssociative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := rapid.SliceOf(anyFact()).Draw(t, "facts")
		want := merged(facts)
		order := rapid.Permutation(facts).Draw(t, "order")
		if got := merged(order, order); !reflect.DeepEqual(got, want) {
			t.Fatalf("another order, twice: %v, want %v", got, want)
		}
		cut := rapid.IntRange(0, len(facts)).Draw(t, "cut")
		if got := merged(merged(facts[cut:]), merged(facts[:cut])); !reflect.DeepEqual(got, want) {
			t.Fatalf("grouped: %v, want %v", got, want)
		}
	})
}

func TestTableTellsWhetherAFactWasNews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		for _, f := range rapid.SliceOf(anyFact()).Draw(t, "facts") {
			before := table.All()
			verdict := table.Merge(f)
			if changed := !reflect.DeepEqual(before, table.All()); changed != (verdict == Changed) {
				t.Fatalf("merge of %v answered %v, changed is %t", f, verdict, changed)
			}
		}
	})
}

func TestTableIsBounded(t *testing.T) {
	var table Table
	long := strings.Repeat("x", maxFactString-8)
	refused := 0
	for i := range 2 * maxFacts {
		f := Fact{Kind: Drain, Subject: fmt.Sprintf("%s%08d", long[:i%200], i), Version: 1}
		if table.Merge(f) == Full {
			refused++
		}
	}
	if table.Len() > maxFacts || table.bytes > maxTableBytes || refused != 2*maxFacts-table.Len() {
		t.Fatalf("%d facts of %d bytes, %d refused", table.Len(), table.bytes, refused)
	}
	held := table.All()[0]
	held.Version++
	if table.Merge(held) != Changed {
		t.Fatal("a full table refuses what it holds already")
	}
}

func TestFactsKeepTheirForm(t *testing.T) {
	for _, f := range []Fact{
		{Kind: Generation, Subject: "gpu-1", Version: 3, Value: 3, Origin: "a"},
		{Kind: 200, Subject: strings.Repeat("s", maxFactString), Version: math.MaxUint64, Value: math.MaxUint64, Origin: strings.Repeat("o", maxFactString)},
		{Kind: Digest, Subject: "a node of any name"},
		{Kind: Fleet, Subject: "x", Text: strings.Repeat("t", MaxFactText)},
	} {
		b, err := AppendFact(nil, &f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseFact(b)
		if err != nil || got != f {
			t.Fatalf("%+v came back as %+v, %v", f, got, err)
		}
	}
	for _, f := range []Fact{
		{Subject: "no kind"},
		{Kind: Drain},
		{Kind: 200, Subject: strings.Repeat("x", maxFactString+1)},
		{Kind: Drain, Subject: "*"},
		{Kind: Fleet, Subject: "gpu\u202e1"},
		{Kind: Generation, Subject: strings.Repeat("x", state.MaxBackendID+1)},
	} {
		if _, err := AppendFact(nil, &f); err == nil {
			t.Errorf("%+v has a wire form", f)
		}
	}
}

func TestFactOfANewerNodeIsRead(t *testing.T) {
	b, _ := AppendFact(nil, &Fact{Kind: Drain, Subject: "s", Version: 1, Origin: "o"})
	b[0] = 0x98 // a text, and two fields more
	b = append(b, 0xa1, 't', 0xcd, 1, 2, 0xa1, 'z')
	if f, err := ParseFact(b); err != nil || f.Subject != "s" || f.Text != "t" {
		t.Fatalf("%+v, %v", f, err)
	}
}

// hostile are packets that would cost a naive decoder much.
var hostile = [][]byte{
	{},
	{0xdd, 255, 255, 255, 255},
	{0xdc, 255, 255},
	{0x9f},
	{0x95},
	{0x95, 1, 0xdb, 255, 255, 255, 255},
	{0x95, 1, 0xda, 255, 255, 'x'},
	{0x95, 1, 0xc6, 255, 255, 255, 255},
	{0x95, 0x95, 1, 1, 1, 1},
	{0x95, 1, 0xa1, 'x', 0xff, 1, 0xa0},
	{0x95, 0xcd, 1, 0, 0xa1, 'x', 1, 1, 0xa0},
	bytes.Repeat([]byte{0x91}, maxFact), bytes.Repeat([]byte{0x95, 1}, maxFact),
	{0x95, 0, 0xa1, 'x', 1, 1, 0xa0},
	{0x95, 1, 0xa0, 1, 1, 0xa0},
	{0x95, 1, 0xa1, 'x', 1, 1, 0xa0, 0},
	{0x95, 2, 0xa1, '*', 1, 1, 0xa0},
	{0x95, 4, 0xa2, 'a', ' ', 1, 1, 0xa0},
}

func TestHostileFactsAreRefusedCheaply(t *testing.T) {
	for _, b := range hostile {
		if _, err := ParseFact(b); err == nil {
			t.Errorf("% x is a fact", b[:min(len(b), 20)])
		}
		if n := testing.AllocsPerRun(10, func() { _, _ = ParseFact(b) }); n > 20 {
			t.Errorf("% x costs %v allocations", b[:min(len(b), 20)], n)
		}
	}
}

func FuzzParseFact(f *testing.F) {
	for _, b := range hostile {
		f.Add(b)
	}
	good, _ := AppendFact(nil, &Fact{Kind: Drain, Subject: "s", Version: 1 << 40, Value: 300, Origin: "origin"})
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		fact, err := ParseFact(b)
		if err != nil {
			return
		}
		again, err := AppendFact(nil, &fact)
		if err != nil {
			t.Fatalf("%+v was read and can't be written: %v", fact, err)
		}
		if got, err := ParseFact(again); err != nil || got != fact {
			t.Fatalf("%+v came back as %+v, %v", fact, got, err)
		}
	})
}

func BenchmarkParseFact(b *testing.B) {
	good, _ := AppendFact(nil, &Fact{Kind: Drain, Subject: "gpu-1", Version: 1 << 40, Value: 300, Origin: "gateway-1"})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseFact(good); err != nil {
			b.Fatal(err)
		}
	}
}

func sorted(facts []Fact) []Fact {
	slices.SortFunc(facts, func(a, b Fact) int { return cmp.Compare(a.Subject, b.Subject) })
	return facts
}

func TestFactsReachEveryoneOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		nodes := r.form(8)
		time.Sleep(10 * time.Second)
		var want []Fact
		for i, n := range nodes {
			f := Fact{Kind: Drain, Subject: fmt.Sprint("s", i), Version: 1, Value: uint64(i), Origin: n.config.Name}
			n.Tell(f)
			want = append(want, f)
		}
		r.within(3*time.Second, "all know all", func() bool {
			return !slices.ContainsFunc(nodes, func(n *node) bool { return len(n.Facts()) != len(nodes) })
		})
		time.Sleep(time.Minute)
		for i, n := range nodes {
			others := slices.Delete(slices.Clone(want), i, i+1)
			if got := sorted(n.told()); !reflect.DeepEqual(got, others) {
				t.Errorf("%s was told %v, want each of the others' once", n.config.Name, got)
			}
			if got := n.counter("facts_sent_total", ""); got != float64(len(nodes)) {
				t.Errorf("%s told %v facts, want its own and each other one once", n.config.Name, got)
			}
		}
	})
}

func TestNewerFactWinsEverywhere(t *testing.T) {
	inBubble(t, func(r *rig) {
		nodes := r.form(3)
		nodes[0].Tell(Fact{Kind: Drain, Subject: "s", Version: 2, Value: 20})
		nodes[1].Tell(Fact{Kind: Drain, Subject: "s", Version: 1, Value: 10})
		time.Sleep(5 * time.Second)
		for _, n := range nodes {
			if got := n.Facts(); len(got) != 1 || got[0].Value != 20 || got[0].Origin != "a" {
				t.Errorf("%s holds %+v", n.config.Name, got)
			}
		}
	})
}

func TestLearnedFactsAreDeliveredAndNotGossiped(t *testing.T) {
	inBubble(t, func(r *rig) {
		nodes := r.form(2)
		news := []Fact{{Kind: Drain, Subject: "s", Version: 2}, {Kind: Drain, Subject: "t", Version: 1}, {Kind: Drain}}
		nodes[0].Learn(news)
		nodes[0].Learn(news)
		r.within(time.Second, "they are delivered", func() bool { return len(nodes[0].told()) == 2 })
		time.Sleep(10 * time.Second)
		if got := nodes[1].told(); len(got) != 0 {
			t.Errorf("b was told %v", got)
		}
		if got := nodes[0].Facts(); len(got) != 2 {
			t.Errorf("a holds %v", got)
		}
	})
}

func TestFloodOfFactsIsBoundedAndCounted(t *testing.T) {
	inBubble(t, func(r *rig) {
		n := r.start("a", "a", nil)
		time.Sleep(time.Second)
		for i := range maxQueue + 100 {
			n.Tell(Fact{Kind: Drain, Subject: fmt.Sprint(i), Version: 1})
		}
		if got := n.counter("facts_dropped_total", "reason=queue_full"); got != 100 || n.queue.NumQueued() != maxQueue {
			t.Errorf("%v dropped, %d queued", got, n.queue.NumQueued())
		}
		h := hooks{n.Members}
		for _, b := range hostile {
			h.NotifyMsg(b)
		}
		h.NotifyMsg(make([]byte, maxFact+1))
		time.Sleep(time.Second)
		if got := n.counter("facts_dropped_total", "reason=malformed"); got != float64(len(hostile)+1) {
			t.Errorf("%v malformed facts counted, want %d", got, len(hostile)+1)
		}
		body, _ := AppendFact(nil, &Fact{Kind: Drain, Subject: "x", Version: 1})
		for range 3 * maxInbox {
			h.NotifyMsg(body)
		}
		if n.counter("facts_dropped_total", "reason=inbox_full") == 0 {
			t.Log("the inbox was drained as fast as it was filled")
		}
	})
}
