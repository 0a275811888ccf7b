package wire

import (
	"testing"

	"pgregory.net/rapid"

	"kvca/state/turn"
)

func TestTurnsComeAsTheyWent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := turn.Message{
			Op: turn.Op(rapid.IntRange(1, int(turn.Ops)-1).Draw(t, "op")), Pool: rapid.StringN(0, -1, turn.MaxName).Draw(t, "pool"),
			ID: rapid.Uint64().Draw(t, "id"), Tenant: rapid.StringN(0, -1, turn.MaxName).Draw(t, "tenant"),
			Class: rapid.Uint8().Draw(t, "class"), Weight: rapid.Float64().Draw(t, "weight"), Waited: drawSpan(t), Left: drawSpan(t), Backends: rapid.Uint64().Draw(t, "backends"),
		}
		whole := AppendTurn(nil, &want)
		r := NewReader(append(whole[:len(whole):len(whole)], "what a later version appends"...))
		if got := r.Turn(); got != want || r.Bad() {
			t.Fatalf("sent %+v, read %+v", want, got)
		}
		for n := range whole {
			if r := NewReader(whole[:n]); true {
				if r.Turn(); !r.Bad() {
					t.Fatalf("%d of %d bytes read as a whole", n, len(whole))
				}
			}
		}
	})
}
