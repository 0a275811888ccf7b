package chain

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"testing"

	"github.com/dchest/siphash"
	"pgregory.net/rapid"
)

// byDefinition computes the chain as the package comment defines it.
func byDefinition(key Key, blockSize int, p []byte) []uint64 {
	var hashes []uint64
	name := uint64(0)
	for ; len(p) >= blockSize; p = p[blockSize:] {
		digest := siphash.New(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, key.K0), key.K1))
		digest.Write(binary.LittleEndian.AppendUint64(nil, name))
		digest.Write(p[:blockSize])
		name = digest.Sum64()
		hashes = append(hashes, name)
	}
	return hashes
}

func TestChainFollowsItsDefinitionHoweverItIsWritten(t *testing.T) {
	var h Hasher
	rapid.Check(t, func(t *rapid.T) {
		key := Key{rapid.Uint64().Draw(t, "k0"), rapid.Uint64().Draw(t, "k1")}
		blockSize := 8 * rapid.IntRange(1, 40).Draw(t, "words")
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 700), 0, 6).Draw(t, "pieces")
		h.Reset(key, blockSize)
		for _, piece := range pieces {
			if n, err := h.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("Write(%d bytes) = %d, %v", len(piece), n, err)
			}
		}
		whole := bytes.Join(pieces, nil)
		if got, want := h.Hashes(), byDefinition(key, blockSize, whole); !slices.Equal(got, want) {
			t.Fatalf("got %x, want %x", got, want)
		}
		if h.Bytes() != int64(len(whole)) {
			t.Fatalf("Bytes() = %d, want %d", h.Bytes(), len(whole))
		}
	})
}

func TestChangedByteChangesItsBlockAndAllAfter(t *testing.T) {
	const blockSize = 64
	text := bytes.Repeat([]byte("0123456789abcdef"), 32)
	before := hashesOf(text, blockSize)
	for at := range text {
		changed := bytes.Clone(text)
		changed[at] ^= 1
		after := hashesOf(changed, blockSize)
		for i := range before {
			if same := before[i] == after[i]; same != (i < at/blockSize) {
				t.Fatalf("byte %d changed: block %d equal: %v", at, i, same)
			}
		}
	}
}

func hashesOf(p []byte, blockSize int) []uint64 {
	var h Hasher
	h.Reset(Key{1, 2}, blockSize)
	h.Write(p)
	return h.Hashes()
}

func TestResetForgetsEverything(t *testing.T) {
	var h Hasher
	h.Reset(Key{1, 2}, 4096)
	h.Write(make([]byte, 5000))
	h.Reset(Key{3, 4}, 16)
	if h.Bytes() != 0 || len(h.Hashes()) != 0 {
		t.Fatal("a reset hasher still has bytes or hashes")
	}
	h.Write([]byte("abcdefghijklmnop"))
	if want := byDefinition(Key{3, 4}, 16, []byte("abcdefghijklmnop")); !slices.Equal(h.Hashes(), want) {
		t.Errorf("got %x, want %x", h.Hashes(), want)
	}
}

func TestBlockSizeBounds(t *testing.T) {
	for _, size := range []int{8, 16, 512, 65536} {
		if err := CheckBlockSize(size); err != nil {
			t.Error(err)
		}
	}
	for _, size := range []int{-8, 0, 4, 7, 9, 511, 65537, 65544} {
		if CheckBlockSize(size) == nil {
			t.Errorf("block size %d was taken", size)
		}
	}
}

func TestRefusedBlockSizeGivesNoBlocks(t *testing.T) {
	var h Hasher
	for _, size := range []int{-1, 0, 7, 1 << 20} {
		h.Reset(Key{}, size)
		h.Write(make([]byte, 1<<12))
		if len(h.Hashes()) != 0 || h.Bytes() != 1<<12 {
			t.Errorf("block size %d: %d hashes of %d bytes", size, len(h.Hashes()), h.Bytes())
		}
	}
}

func TestUsedHasherDoesNotAllocate(t *testing.T) {
	var h Hasher
	text := make([]byte, 1<<16)
	run := func() {
		h.Reset(Key{1, 2}, 512)
		h.Write(text)
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}

func BenchmarkHasher(b *testing.B) {
	for _, blockSize := range []int{128, 512, 2048} {
		b.Run(fmtSize(blockSize), func(b *testing.B) {
			var h Hasher
			text := make([]byte, 400_000)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				h.Reset(Key{1, 2}, blockSize)
				h.Write(text)
			}
		})
	}
}

func fmtSize(blockSize int) string { return "block=" + strconv.Itoa(blockSize) }
