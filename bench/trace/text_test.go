package trace

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type piece struct {
	content uint64
	tokens  int
}

var pieces = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) piece {
	return piece{rapid.Uint64Range(0, 3).Draw(t, "content"), rapid.IntRange(1, 400).Draw(t, "tokens")}
}), 0, 12)

func written(p []piece) *text {
	var t text
	for _, p := range p {
		t.message(p.content, p.tokens)
	}
	return &t
}

// commonTokens is how far two texts are the same: whole pieces, and of the first that differ what both have of one content.
func commonTokens(a, b []piece) int {
	n := 0
	for i := range min(len(a), len(b)) {
		if a[i].content == b[i].content {
			n += min(a[i].tokens, b[i].tokens)
		}
		if a[i] != b[i] {
			break
		}
	}
	return n
}

func TestTextsHaveTheNamesOfWhatTheyHaveInCommon(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := pieces.Draw(t, "start")
		a := append(slices.Clone(start), pieces.Draw(t, "a")...)
		b := append(slices.Clone(start), pieces.Draw(t, "b")...)
		ta, tb := written(a), written(b)
		if len(ta.names) != ta.tokens/UnitTokens {
			t.Fatalf("%d names for %d tokens", len(ta.names), ta.tokens)
		}
		n := common(ta.names, tb.names)
		if want := commonTokens(a, b) / UnitTokens; n != want {
			t.Fatalf("%d units in common, want %d", n, want)
		}
		for i := n; i < min(len(ta.names), len(tb.names)); i++ {
			if ta.names[i] == tb.names[i] {
				t.Fatalf("unit %d has one name after others that differ", i)
			}
		}
		if (ta.name == tb.name) != slices.Equal(a, b) {
			t.Fatalf("%v is named %x, %v is named %x", a, ta.name, b, tb.name)
		}
	})
}

func TestMarkAtTheEndOfAUnitHasItsName(t *testing.T) {
	text := written([]piece{{1, 100}, {2, 28}, {3, 5}})
	if text.marks[1] != (Mark{Name: text.names[0], Tokens: 128}) || text.marks[0].Tokens != 100 || text.marks[2].Tokens != 133 {
		t.Errorf("marks %v, names %v", text.marks, text.names)
	}
}
