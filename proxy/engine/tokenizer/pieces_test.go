package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func message(i int) string {
	return strings.Repeat(fmt.Sprintf("the user's words %d ", i), 10) + "<|end|>"
}

func TestNextTurnTokenizesItsLastMessageOnly(t *testing.T) {
	tok, fresh := small(t), small(t)
	before := message(1) + message(2) + message(3)
	if _, err := tok.Append(nil, before, false); err != nil {
		t.Fatal(err)
	}
	var seen []string
	steps := tok.steps
	tok.steps = append([]step{func(piece string, part func(string)) error {
		seen = append(seen, piece)
		part(piece)
		return nil
	}}, steps...)
	got, err := tok.Append(nil, before+message(4), false)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSuffix(message(4), "<|end|>"); len(seen) != 1 || seen[0] != want {
		t.Errorf("tokenized %q, want the last message only", seen)
	}
	if want, _ := fresh.Append(nil, before+message(4), false); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPieceThatFailedIsNotRemembered(t *testing.T) {
	tok := small(t)
	steps, failed := tok.steps, errors.New("took too long")
	tok.steps = []step{func(string, func(string)) error { return failed }}
	if _, err := tok.Append(nil, message(1), false); !errors.Is(err, failed) {
		t.Fatalf("got %v, want %v", err, failed)
	}
	tok.steps = steps
	got, err := tok.Append(nil, message(1), false)
	if want, _ := small(t).Append(nil, message(1), false); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

// Whatever is remembered and forgotten, tokens are those of a tokenizer that
// remembers nothing, and the bound holds.
func TestPiecesAreRememberedWithinTheirBound(t *testing.T) {
	const limit = 4 << 10
	tok, forgetful := small(t), small(t)
	forgetful.pieces = newPieces(0)
	rapid.Check(t, func(t *rapid.T) {
		tok.pieces = newPieces(limit)
		for range rapid.IntRange(1, 10).Draw(t, "prompts") {
			var text strings.Builder
			for range rapid.IntRange(0, 6).Draw(t, "messages") {
				text.WriteString(message(rapid.IntRange(0, 20).Draw(t, "message")))
				text.WriteString(rapid.SampledFrom([]string{"", " ", "<strip> ", "word", "é!", strings.Repeat("a b ", 120)}).Draw(t, "between"))
			}
			got, err := tok.Append(nil, text.String(), false)
			want, _ := forgetful.Append(nil, text.String(), false)
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%q: got %v, %v, want %v", text.String(), got, err, want)
			}
			held := 0
			for _, g := range []map[string][]uint32{tok.pieces.young, tok.pieces.old} {
				for piece, ids := range g {
					held += cost(piece, ids)
				}
			}
			if held > limit || len(forgetful.pieces.young) > 0 {
				t.Fatalf("%d bytes are held, want at most %d", held, limit)
			}
		}
	})
}
