package jinja

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"
)

// golden is a template with variables, and what Python's Jinja made of them.
type golden struct {
	Template string          `json:"template"` // a file, unless source is given
	Source   string          `json:"source"`
	Case     string          `json:"case"`
	Vars     json.RawMessage `json:"vars"`
	Out      *string         `json:"out"`
	Err      string          `json:"err"`
	Compile  string          `json:"compile"`
}

// clock is when the golden files were made, for them.
func clock() time.Time { return time.Date(2026, 11, 9, 7, 5, 3, 0, time.UTC) }

func eachGoldenSource(t testing.TB, add func(string)) {
	eachGolden(t, "testdata/python.jsonl", func(g golden) { add(g.Source) })
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

func variables(t testing.TB, data []byte) map[string]Value {
	t.Helper()
	vars := map[string]Value{}
	if len(data) == 0 {
		return vars
	}
	v, err := ReadJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	d := v.(*Dict)
	for i := range d.Len() {
		k, v := d.At(i)
		vars[k] = v
	}
	return vars
}

func (g *golden) render(t *testing.T) (string, error) {
	t.Helper()
	src := g.Source
	if src == "" {
		data, err := os.ReadFile(g.Template)
		if err != nil {
			t.Fatal(err)
		}
		src = string(data)
	}
	tmpl, err := Compile(src)
	if err != nil {
		return "", err
	}
	return tmpl.Render(variables(t, g.Vars), clock)
}

// TestRealTemplatesRenderAsInPython checks the file that KVCA_TEMPLATES_GOLD names,
// made as testdata/README.md says.
func TestRealTemplatesRenderAsInPython(t *testing.T) {
	path := os.Getenv("KVCA_TEMPLATES_GOLD")
	if path == "" {
		t.Skip("KVCA_TEMPLATES_GOLD names no file")
	}
	checkGolden(t, path)
}

func TestRendersAsPythonDoes(t *testing.T) { checkGolden(t, "testdata/python.jsonl") }

func checkGolden(t *testing.T, path string) {
	t.Helper()
	var same, differ, refused, lenient, raised int
	eachGolden(t, path, func(g golden) {
		out, err := g.render(t)
		switch {
		case g.Out == nil && err == nil:
			lenient++
			t.Errorf("%s %s%s: rendered %q, where Python raised %s", g.Template, g.Case, g.Source, out, g.Err+g.Compile)
		case g.Out == nil:
			raised++
		case err != nil:
			refused++
			t.Errorf("%s %s%s: %v", g.Template, g.Case, g.Source, err)
		case out != *g.Out:
			differ++
			t.Errorf("%s %s%.80s:\n got %.3000q\nwant %.3000q", g.Template, g.Case, g.Source, out, *g.Out)
		default:
			same++
		}
	})
	t.Logf("%d the same, %d differ, %d not rendered; of those that Python refuses %d refused, %d rendered", same, differ, refused, raised, lenient)
}
