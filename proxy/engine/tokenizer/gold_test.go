package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// folder is where the tokenizers of real models are, each a folder with its
// tokenizer.json: qwen3, llama3_1, deepseek_v3, gptoss. See testdata/README.md.
func folder(t testing.TB, model string) string {
	t.Helper()
	dir := os.Getenv("KVCA_TOKENIZERS")
	if dir == "" {
		t.Skip("KVCA_TOKENIZERS names no folder of tokenizers")
	}
	dir = filepath.Join(dir, model)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("KVCA_TOKENIZERS has no %s: %v", model, err)
	}
	return dir
}

func loaded(t testing.TB, model string) *Tokenizer {
	t.Helper()
	tok, err := Load(filepath.Join(folder(t, model), "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// golden is a string with the tokens that the reference gave for it, and those with
// the model's special tokens around.
type golden struct {
	S   string   `json:"s"`
	IDs []uint32 `json:"ids"`
	SP  []uint32 `json:"sp"`
}

func eachGolden(t testing.TB, path string, check func(golden)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		check(g)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func checkGolden(t *testing.T, tok *Tokenizer, path string) {
	t.Helper()
	n, bad := 0, 0
	eachGolden(t, path, func(g golden) {
		n++
		ids, err := tok.Append(nil, g.S, false)
		if err != nil {
			t.Errorf("%q: %v", g.S, err)
		}
		special, _ := tok.Append(nil, g.S, true)
		if !slices.Equal(ids, g.IDs) || g.SP != nil && !slices.Equal(special, g.SP) {
			if bad++; bad <= 10 {
				t.Errorf("%.200q:\n got %v\nwant %v\nwith special tokens %v\nwant %v", g.S, ids, g.IDs, special, g.SP)
			}
		}
	})
	t.Logf("%d of %d strings differ", bad, n)
	if n == 0 {
		t.Error("no strings")
	}
}

func TestSameTokensAsReference(t *testing.T) {
	checkGolden(t, loaded(t, "qwen3"), "testdata/qwen3.jsonl")
}

// TestSameTokensAsReferenceAtLength checks files as testdata/README.md says how to
// make, of any number of strings, for each model.
func TestSameTokensAsReferenceAtLength(t *testing.T) {
	dir := os.Getenv("KVCA_TOKENIZERS_GOLD")
	if dir == "" {
		t.Skip("KVCA_TOKENIZERS_GOLD names no folder of MODEL.jsonl files")
	}
	for _, model := range []string{"qwen3", "llama3_1", "deepseek_v3", "gptoss"} {
		t.Run(model, func(t *testing.T) {
			checkGolden(t, loaded(t, model), filepath.Join(dir, model+".jsonl"))
		})
	}
}
