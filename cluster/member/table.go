package member

import (
	"cmp"
	"slices"
)

const (
	maxFacts      = 65536
	maxTableBytes = 8 << 20 // of their strings
)

// Table holds the winning fact of each (Kind, Subject). Merging is idempotent,
// commutative and associative while there is room. Not safe for concurrent use.
type Table struct {
	facts map[factKey]Fact
	bytes int
}

type factKey struct {
	kind    FactKind
	subject string
}

// Verdict is what became of a fact.
type Verdict uint8

// What Merge answers.
const (
	Known   Verdict = iota // the table holds it or one that wins over it
	Changed                // the table holds it now
	Full                   // there is no room for another one; nothing changed
)

// Merge takes f in.
func (t *Table) Merge(f Fact) Verdict {
	key := factKey{f.Kind, f.Subject}
	old, ok := t.facts[key]
	if ok && !f.after(&old) {
		return Known
	}
	more := len(f.Origin) + len(f.Text) - len(old.Origin) - len(old.Text)
	if !ok {
		more += len(f.Subject)
	}
	if t.bytes+more > maxTableBytes || !ok && len(t.facts) >= maxFacts {
		return Full
	}
	if t.facts == nil {
		t.facts = map[factKey]Fact{}
	}
	t.facts[key] = f
	t.bytes += more
	return Changed
}

// Get gives the fact of a kind and subject.
func (t *Table) Get(kind FactKind, subject string) (Fact, bool) {
	f, ok := t.facts[factKey{kind, subject}]
	return f, ok
}

// Len is how many facts there are.
func (t *Table) Len() int { return len(t.facts) }

// All are the facts by kind and subject.
func (t *Table) All() []Fact {
	all := make([]Fact, 0, len(t.facts))
	for _, f := range t.facts {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Fact) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Subject, b.Subject))
	})
	return all
}
