package kvindex

import (
	"encoding/binary"
	"testing"

	"github.com/dchest/siphash"
	"pgregory.net/rapid"

	"kvca/state/chain"
)

func TestPlainKeyIsSipHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := chain.Key{K0: rapid.Uint64().Draw(t, "k0"), K1: rapid.Uint64().Draw(t, "k1")}
		last := rapid.Uint64().Draw(t, "last")
		tokens := rapid.SliceOfN(rapid.Uint32(), 0, 66).Draw(t, "tokens")
		tokens = tokens[:len(tokens)&^1]
		b := binary.LittleEndian.AppendUint64(nil, last)
		for _, token := range tokens {
			b = binary.LittleEndian.AppendUint32(b, token)
		}
		if got, want := plainKey(key, last, tokens), siphash.Hash(key.K0, key.K1, b); got != want {
			t.Fatalf("got %x, want %x", got, want)
		}
	})
}
