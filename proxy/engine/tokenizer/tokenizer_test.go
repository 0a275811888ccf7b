package tokenizer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func small(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := Load("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// changed is the small tokenizer with a piece of its file replaced.
func changed(t testing.TB, from, to string) (*Tokenizer, error) {
	t.Helper()
	data, err := os.ReadFile("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		t.Fatalf("testdata/small.json has no %s", from)
	}
	return Read([]byte(strings.Replace(string(data), from, to, 1)))
}

func TestSmallTokenizerIsAsReference(t *testing.T) {
	checkGolden(t, small(t), "testdata/small.jsonl")
}

func TestTemplateTokensAreAddedWhereAsked(t *testing.T) {
	frame := `"post_processor": {"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing","single":[` +
		`{"SpecialToken":{"id":"<b>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"<e>","type_id":0}}],` +
		`"special_tokens":{"<b>":{"id":"<b>","ids":[7]},"<e>":{"id":"<e>","ids":[8,9]}}}]}`
	tok, err := changed(t, `"post_processor": null`, frame)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := tok.Append(nil, "hi", false)
	framed, _ := tok.Append([]uint32{1}, "hi", true)
	if want := append(append([]uint32{1, 7}, plain...), 8, 9); !slices.Equal(framed, want) {
		t.Errorf("got %v, want %v", framed, want)
	}
}

func TestWholeWordsAreTokensWhereMergesAreIgnored(t *testing.T) {
	tok, err := changed(t, `"ignore_merges": false`, `"ignore_merges": true`)
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := tok.Append(nil, "whole", false)
	split, _ := small(t).Append(nil, "whole", false)
	if len(ids) != 1 || len(split) < 2 {
		t.Errorf("got %v, and with merges %v", ids, split)
	}
}

func TestUnknownPatternsSplitLikeKnownOnes(t *testing.T) {
	// The same pattern in a group is one that no rule is known for.
	tok, err := changed(t, `(?i:'s|`, `(?i:'s|'S|`)
	if err != nil {
		t.Fatal(err)
	}
	eachGolden(t, "testdata/small.jsonl", func(g golden) {
		got, err := tok.Append(nil, g.S, false)
		if err != nil || !slices.Equal(got, g.IDs) {
			t.Errorf("%q: got %v, %v, want %v", g.S, got, err, g.IDs)
		}
	})
}

func TestPatternThatTakesTooLongIsAnError(t *testing.T) {
	s, err := patternStep(`(a|aa|a?)+$b`, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s(strings.Repeat("a", 500), func(string) {}); err == nil {
		t.Error("got no error")
	}
}

func TestFilesThatCannotBeExactAreRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"type": "BPE"`, `"type": "Unigram"`, "Unigram"},
		{`"type": "BPE"`, `"type": "WordPiece"`, "WordPiece"},
		{`"byte_fallback": false`, `"byte_fallback": true`, "byte_fallback"},
		{`"dropout": null`, `"dropout": 0.1`, "dropout"},
		{`"end_of_word_suffix": null`, `"end_of_word_suffix": "</w>"`, "suffix"},
		{`{"type": "NFC"}`, `{"type": "Lowercase"}`, "Lowercase"},
		{`"type": "ByteLevel"`, `"type": "Metaspace"`, "Metaspace"},
		{`"behavior": "Isolated"`, `"behavior": "MergedWithNext"`, "MergedWithNext"},
		{`(?i:'s|`, `(?i:('s|`, "pattern"},
		{`"post_processor": null`, `"post_processor": {"type":"BertProcessing"}`, "BertProcessing"},
		{`["h", "i"]`, `["h", "no"]`, "merge 0"},
		{`["h", "i"]`, `"h i x"`, "merge"},
		{`"a": 97`, `"a": 4294967295`, "too large"},
		{`"a": 97, `, ``, "byte 0x61"},
	} {
		if _, err := changed(t, c.from, c.to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.to, err, c.want)
		}
	}
	for _, data := range []string{"", "{}", "[]", "null", `{"model":{"type":"BPE"}}`, `{"model":{"type":"BPE","vocab":{}}}`} {
		if _, err := Read([]byte(data)); err == nil {
			t.Errorf("%q: got no error", data)
		}
	}
}

func TestMergesWithSpaceAreReadToo(t *testing.T) {
	tok, err := changed(t, `["h", "i"]`, `"h i"`)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, tok, "testdata/small.jsonl")
}

// TestLongWordsMergeAsShortOnes holds the two ways of merging against each other.
func TestLongWordsMergeAsShortOnes(t *testing.T) {
	b := small(t).bpe
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringOfN(rapid.SampledFrom([]rune("aathelow userh")), 2, shortWord, -1).Draw(t, "word")
		var x, y []uint32
		for i := range len(word) {
			x, y = append(x, b.bytes[word[i]]), append(y, b.bytes[word[i]])
		}
		x, y = x[:b.mergeShort(x)], y[:b.mergeLong(y)]
		if !slices.Equal(x, y) {
			t.Errorf("%q: short %v, long %v", word, x, y)
		}
	})
}

// TestManyMarksAreNormalizedAsFewAre checks the own normalization where the library's
// does no more than the standard says.
func TestManyMarksAreNormalizedAsFewAre(t *testing.T) {
	runes := []rune("aeoAEq가\u1100\u1161\u11a8\u0300\u0301\u0323\u0345\u0308\u1e9b\u0958\u0f43\u212b\u0344")
	for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
		rapid.Check(t, func(t *rapid.T) {
			s := rapid.StringOfN(rapid.SampledFrom(runes), 0, 12, -1).Draw(t, "text")
			decompose := norm.NFD
			if form == norm.NFKC || form == norm.NFKD {
				decompose = norm.NFKD
			}
			got := decomposed(decompose, s)
			if form == norm.NFC || form == norm.NFKC {
				got = composed(got)
			}
			if want := form.String(s); string(got) != want {
				t.Errorf("%+q: got %+q, want %+q", s, string(got), want)
			}
		})
	}
}

func TestTokenizerIsUsedConcurrently(t *testing.T) {
	tok := small(t)
	var wg sync.WaitGroup
	for seed := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(seed), 0))
			for range 500 {
				s := strings.Repeat("the user hi", 1+r.IntN(3))
				got, _ := tok.Append(nil, s, false)
				want := tok.bpe.merge(nil, "the")
				if !slices.Equal(got[:len(want)], want) {
					t.Errorf("%q: got %v", s, got)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzAppend(f *testing.F) {
	eachGolden(f, "testdata/small.jsonl", func(g golden) { f.Add(g.S) })
	tok := small(f)
	f.Fuzz(func(t *testing.T, s string) {
		ids, err := tok.Append(nil, s, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if int(id) >= tok.Vocabulary() {
				t.Fatalf("token %d of %d", id, tok.Vocabulary())
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("testdata/small.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if tok, err := Read(data); err == nil {
			_, _ = tok.Append(nil, "the user's 123 <|end|> \u00e9\u0301\n\n x", true)
		}
	})
}

func benchmarkAppend(b *testing.B, model, text string) {
	tok := loaded(b, model)
	tok.pieces = newPieces(0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var ids []uint32
	for b.Loop() {
		ids, _ = tok.Append(ids[:0], text, false)
	}
}

func BenchmarkAppend(b *testing.B) {
	prose, err := os.ReadFile("doc.go")
	if err != nil {
		b.Fatal(err)
	}
	code, err := os.ReadFile("parts.go")
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat(string(prose)+string(code)+"Grüße, 你好世界 😀 1234567\n", 20)
	for _, model := range []string{"qwen3", "llama3_1", "deepseek_v3", "gptoss"} {
		b.Run(model, func(b *testing.B) { benchmarkAppend(b, model, text) })
	}
	b.Run("qwen3 one word", func(b *testing.B) { benchmarkAppend(b, "qwen3", strings.Repeat("abcdefghij", 30_000)) })
}

// BenchmarkNextTurn tokenizes the turns of one conversation, each 8 kB longer than the one
// before, from 200 kB on.
func BenchmarkNextTurn(b *testing.B) {
	tok := loaded(b, "qwen3")
	message := func(i int) string {
		return "<|im_start|>user\n" + strings.Repeat("What do you hold of turn "+strconv.Itoa(i)+", and since when? ", 160) + "<|im_end|>\n"
	}
	var text strings.Builder
	for i := range 25 {
		text.WriteString(message(i))
	}
	_, _ = tok.Append(nil, text.String(), false)
	var ids []uint32
	b.SetBytes(int64(text.Len()))
	for i := 25; b.Loop(); i++ {
		ids, _ = tok.Append(ids[:0], text.String()+message(i), false)
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, model := range []string{"qwen3", "gptoss"} {
		b.Run(model, func(b *testing.B) {
			path := filepath.Join(folder(b, model), "tokenizer.json")
			for b.Loop() {
				if _, err := Load(path); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
