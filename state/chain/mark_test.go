package chain

import (
	"slices"
	"testing"
)

func marksOf(pieces ...string) []Mark {
	var h Hasher
	h.Reset(Key{1, 2}, 16)
	for _, piece := range pieces {
		h.Write([]byte(piece))
		h.Mark()
	}
	return h.Marks()
}

func TestMarkNamesAllThatWasWritten(t *testing.T) {
	short, long := marksOf("abc"), marksOf("a", "bc", "def")
	if !slices.Contains(long, short[0]) {
		t.Errorf("%v is not among %v", short, long)
	}
	if other := marksOf("abd"); other[0].Hash == short[0].Hash {
		t.Error("two texts share a mark")
	}
	if a, b := marksOf("0123456789abcdef", "x"), marksOf("0123456789abcdeF", "x"); a[0].Hash == b[0].Hash {
		t.Error("a mark does not name the blocks before it")
	}
}

func TestBlocksEndHasNoMark(t *testing.T) {
	if marks := marksOf("", "0123456789abcdef", "x"); len(marks) != 1 || marks[0].Bytes != 17 {
		t.Errorf("got %v", marks)
	}
}

func TestLastMarksAreKept(t *testing.T) {
	var pieces []string
	for range 3 * maxMarks {
		pieces = append(pieces, "abc")
	}
	marks := marksOf(pieces...)
	if len(marks) > maxMarks || marks[len(marks)-1].Bytes != int64(3*len(pieces)) && len(pieces)*3%16 != 0 {
		t.Errorf("got %v", marks)
	}
	for i := 1; i < len(marks); i++ {
		if marks[i].Bytes <= marks[i-1].Bytes {
			t.Errorf("out of order: %v", marks)
		}
	}
}

// A mark must never be taken for a block: both are looked up in one map.
func TestMarkIsNoBlocksName(t *testing.T) {
	var part, whole Hasher
	part.Reset(Key{1, 2}, 32)
	part.Write([]byte("0123456789abcdef"))
	part.Mark()
	whole.Reset(Key{1, 2}, 16)
	whole.Write([]byte("0123456789abcdef"))
	if part.Marks()[0].Hash == whole.Hashes()[0] {
		t.Error("a mark has a block's name")
	}
}
