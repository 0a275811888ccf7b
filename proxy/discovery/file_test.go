package discovery

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvca/state/virtualtime"
)

const goodList = `# the fleet
- gpu-1=http://10.0.0.1:8000
- id: gpu-2
  url: https://10.0.0.2:8000
  server_name: gpu-2.example
  weight: 2
  models: [llama, "qwen"]
  cache_tokens: 100000
  zone: eu-1a
  draining: true
- {url: "http://10.0.0.3:8000", events: auto}
`

func TestAListIsRead(t *testing.T) {
	list, err := parseList("list", []byte(goodList))
	if err != nil {
		t.Fatal(err)
	}
	if got := show(list); got != "gpu-1=http://10.0.0.1:8000 gpu-2=https://10.0.0.2:8000! 10.0.0.3:8000" {
		t.Errorf("read %q", got)
	}
	two := list[1]
	if two.Weight != 2 || len(two.Models) != 2 || two.CacheTokens != 100000 || two.Zone != "eu-1a" || two.ServerName != "gpu-2.example" || list[2].Events != "auto" {
		t.Errorf("read %+v, %+v", two, list[2])
	}
	list, err = parseList("list", []byte(`[{"id":"a","url":"http://a:1","weight":0.5},"http://b:2"]`))
	if got := show(list); err != nil || got != "a=http://a:1 b:2" || list[0].Weight != 0.5 {
		t.Errorf("JSON: %q, %v", got, err)
	}
	for _, empty := range []string{"", "# nothing\n", "[]", "---\n"} {
		if list, err := parseList("list", []byte(empty)); err != nil || len(list) != 0 {
			t.Errorf("%q: %v, %v", empty, list, err)
		}
	}
}

func TestEveryFaultOfAListIsTold(t *testing.T) {
	for text, wants := range map[string][]string{
		"- url: ftp://a\n- url: http://b:1\n  wieght: 2\n- http://b:1\n- http://b:1\n": {"line 1: url", "line 3:", "wieght", "line 5: id"},
		"backends: []\n":                                    {"holds a mapping", "want a list"},
		"- a\n---\n- b\n":                                   {"second document"},
		"- &x http://a:1\n- *x\n":                           {"not supported"},
		"- url: !!str http://a:1\n":                         {"not supported"},
		"- url: [http://a:1":                                {"no valid YAML"},
		"- http://a:1\n- [x]\n":                             {"line 2"},
		"- url: http://a:1\n  weight: heavy\n":              {"line 2", "weight"},
		"- url: http://a:1\n  api_key_file: /nowhere/key\n": {"api_key_file"},
		"- \"*=http://a:1\"\n- id: \"gpu\\u202e1\"\n  url: http://b:1\n": {"line 1: id", `"*"`, "line 2: id", "want 1 to 128 letters"},
		strings.Repeat("[", 1000): {"nest 1000 deep"},
	} {
		list, err := parseList("fleet.yaml", []byte(text))
		if err == nil {
			t.Errorf("%.40q: read %q", text, show(list))
			continue
		}
		for _, want := range append(wants, "fleet.yaml") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%.40q: %v does not say %q", text, err, want)
			}
		}
	}
}

func TestAFileIsFollowedAllOrNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	virtualtime.Test(t, func(t *testing.T) {
		l := new(logs)
		to := follow(t, mustParse(t, "file:"+path, Options{Logger: l.logger()}))
		if n := to.told(); n != 0 || l.count("no such file") != 1 {
			t.Errorf("told %d sets of no file:\n%s", n, l)
		}
		write("- http://a:1\n")
		later(2 * fileEvery)
		to.want(t, "a:1")
		write("- http://b:1\n- nonsense\n")
		later(10 * fileEvery)
		to.want(t, "a:1")
		if n := l.count("discovery failed"); n != 2 {
			t.Errorf("%d warnings, want one for each fault:\n%s", n, l)
		}
		write("- http://b:1\n")
		later(2 * fileEvery)
		to.want(t, "b:1")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		later(2 * fileEvery)
		to.want(t, "b:1")
		if n := to.told(); n != 2 {
			t.Errorf("told %d sets, want 2", n)
		}
	})
}

func FuzzList(f *testing.F) {
	f.Add([]byte(goodList))
	f.Add([]byte(`[{"id":"a","url":"http://a:1"}]`))
	f.Add([]byte("- &a [*a]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4<<10 || strings.Contains(string(text), "api_key_file") {
			return
		}
		list, err := parseList("list", text)
		ids := make(map[string]bool)
		for _, c := range list {
			if err != nil || ids[c.ID] || c.Validate() != nil {
				t.Fatalf("%+v, %v", c, err)
			}
			ids[c.ID] = true
		}
	})
}
