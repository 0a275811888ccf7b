package template

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// golden is a template, a request, and the prompt that vLLM made of both.
type golden struct {
	Template string  `json:"template"` // a file
	Case     string  `json:"case"`
	Body     string  `json:"body"`
	Format   string  `json:"format"`
	Out      *string `json:"out"`
	Err      string  `json:"err"`
}

func eachGolden(t testing.TB, path string, check func(g golden)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		check(g)
	}
}

// goldenTokens are the special tokens of the tokenizer that made the golden files.
var goldenTokens = map[string]string{"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}

func checkGolden(t *testing.T, path string) {
	t.Helper()
	var same, differ, unsupported, refused, lenient, raised int
	eachGolden(t, path, func(g golden) {
		source, err := os.ReadFile(g.Template)
		if err != nil {
			t.Fatal(err)
		}
		var out string
		tmpl, err := Compile(string(source), goldenTokens)
		if err == nil {
			if iterates := tmpl.compiled.IteratesContent(); g.Format != "" && iterates != (g.Format == "openai") {
				t.Errorf("%s: iterates content: %v, but the format is %s", g.Template, iterates, g.Format)
			}
			out, err = tmpl.Render([]byte(g.Body))
		}
		switch {
		case g.Out == nil && err == nil:
			lenient++
			t.Errorf("%s %s: rendered, where the engine refuses: %s", g.Template, g.Case, g.Err)
		case g.Out == nil:
			raised++
		case errors.Is(err, ErrUnsupported):
			unsupported++
		case err != nil:
			refused++
			t.Errorf("%s %s: %v", g.Template, g.Case, err)
		case out != *g.Out:
			differ++
			t.Errorf("%s %s:\n got %.2000q\nwant %.2000q", g.Template, g.Case, out, *g.Out)
		default:
			same++
		}
	})
	t.Logf("%d the same, %d differ, %d not rendered, %d unsupported; of those that the engine refuses %d refused, %d rendered",
		same, differ, refused, unsupported, raised, lenient)
}

// TestRealTemplatesRenderAsInVLLM checks the file that KVCA_RENDER_GOLD names, made
// as testdata/README.md says.
func TestRealTemplatesRenderAsInVLLM(t *testing.T) {
	path := os.Getenv("KVCA_RENDER_GOLD")
	if path == "" {
		t.Skip("KVCA_RENDER_GOLD names no file")
	}
	checkGolden(t, path)
}

func TestRendersAsVLLMDoes(t *testing.T) { checkGolden(t, "testdata/vllm.jsonl") }
