package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// flagsAre stands for a command line.
func flagsAre(m map[string][]string) func(*option) ([]string, bool) {
	return func(o *option) ([]string, bool) { v, ok := m[o.name]; return v, ok }
}

// envIs stands for an environment.
func envIs(m map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	file := writeFile(t, "kvca.yaml", "ttl: 3m\nbackend: [http://file:1]\ndebug_headers: true\nnode_name: filed\n")
	flags := map[string][]string{"ttl": {"1m"}, "backend": {"http://flag:1", "http://flag:2"}, "debug-headers": {"false"}}
	env := map[string]string{"KVCA_TTL": "2m", "KVCA_BACKEND": "http://env:1, http://env:2", "KVCA_DEBUG_HEADERS": "true", "KVCA_NODE_NAME": ""}
	for _, c := range []struct {
		name     string
		src      sources
		ttl      time.Duration
		backends string
		debug    bool
		node     string
	}{
		{"all", sources{flagsAre(flags), envIs(env), file}, time.Minute, "flag:1 flag:2", false, "filed"},
		{"no flags", sources{nil, envIs(env), file}, 2 * time.Minute, "env:1 env:2", true, "filed"},
		{"file", sources{nil, nil, file}, 3 * time.Minute, "file:1", true, "filed"},
		{"nothing", sources{}, 10 * time.Minute, "", false, hostName()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := resolve(c.src)
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, b := range s.backends {
				ids = append(ids, b.ID)
			}
			if got := strings.Join(ids, " "); s.blocks.TTL != c.ttl || got != c.backends || s.proxy.DebugHeaders != c.debug || s.proxy.Node != c.node {
				t.Errorf("got ttl %v, backends %q, debug headers %v, node %s", s.blocks.TTL, got, s.proxy.DebugHeaders, s.proxy.Node)
			}
		})
	}
}

func TestEveryFaultIsReportedAtOnceWithItsPlace(t *testing.T) {
	file := writeFile(t, "kvca.yaml", `listen: 8080
lisen: ":1"
block-size: 512
ttl: 10 minutes

backend:
  - gpu-1=http://a:1
  - gpu-1=http://b:1
  - ftp://c:1
  - id: gpu-2
    url: http://d:1
    wieght: 2
    weight: -1
  - url: http://e:1
    id: gpu-3
    weight: 2000
  - url: http://f:1
    models: one
  - [nested]
policy: best
max_index_bytes: 96MB
debug_headers: yes
alias: a=b
ttl: 5m
simulate:
drain_timeout: [1s]
body_budget: 1MiB
`)
	_, err := resolve(sources{flagsAre(map[string][]string{"health-interval": {"2"}}), envIs(map[string]string{"KVCA_PATH": "v1/audio"}), file})
	var got faults
	if !errors.As(err, &got) {
		t.Fatalf("error is %v", err)
	}
	var text []string
	for _, f := range got {
		text = append(text, strings.TrimPrefix(f.String(), file+":"))
	}
	golden(t, "testdata/faults.txt", strings.Join(text, "\n")+"\n")
}

func TestFileIsCheckedWhereItDoesNotCount(t *testing.T) {
	file := writeFile(t, "kvca.yaml", "ttl: soon\n")
	_, err := resolve(sources{flagsAre(map[string][]string{"ttl": {"1m"}}), nil, file})
	if err == nil || !strings.Contains(err.Error(), file+`:1: ttl: "soon"`) {
		t.Errorf("error is %v", err)
	}
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"listen: [":                  ":1: no valid YAML",
		"- listen":                   ":1: the file holds a list",
		"just text":                  "the file holds a single value",
		"ttl: 1m\n---\nttl: 2m":      ":3: a second document",
		"ttl: &x 1m\n":               ":1: YAML Anchor is not supported",
		"ttl: !!str 1m\n":            ":1: YAML Tag is not supported",
		"\n\nlisten:\n  a: 1\n":      "listen: is a mapping: want HOST:PORT",
		"ttl: 1m\n\tadmin: \":1\"\n": ":2: ",
	} {
		_, err := resolve(sources{file: writeFile(t, "kvca.yaml", text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q in it", text, err, want)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "backend:\n  # - http://a:1\n"} {
		if _, err := resolve(sources{file: writeFile(t, "kvca.yaml", text)}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := resolve(sources{file: "/nonexistent.yaml"}); err == nil || !strings.Contains(err.Error(), "/nonexistent.yaml: can't be read") {
		t.Errorf("error is %v", err)
	}
}

func TestIDsOfBackendsThatAreNone(t *testing.T) {
	const want = "want 1 to 128 letters"
	for name, src := range map[string]sources{
		"flag":     {flag: flagsAre(map[string][]string{"backend": {"*=http://a:1"}})},
		"variable": {env: envIs(map[string]string{"KVCA_BACKEND": "gpu\u202e1=http://a:1"})},
		"file":     {file: writeFile(t, "kvca.yaml", "backend:\n  - a b=http://a:1\n")},
		"mapping":  {file: writeFile(t, "kvca.yaml", "backend:\n  - id: a/b\n    url: http://a:1\n")},
	} {
		if _, err := resolve(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %q in it", name, err, want)
		}
	}
}

func TestBackendsAsMappings(t *testing.T) {
	key := writeFile(t, "key", "sk-1\n")
	s, err := resolve(sources{file: writeFile(t, "kvca.yaml", `
backend:
  - id: a
    url: https://gpu:8443
    weight: 2.5
    models: [llama, qwen]
    cache_tokens: 400000
    insecure_skip_verify: true
    api_key_file: `+key)})
	if err != nil {
		t.Fatal(err)
	}
	b := s.backends[0]
	if b.ID != "a" || b.URL != "https://gpu:8443" || b.Weight != 2.5 || !slices.Equal(b.Models, []string{"llama", "qwen"}) ||
		b.CacheTokens != 400000 || b.APIKey != "sk-1" || !b.InsecureSkipVerify {
		t.Errorf("got %+v", b)
	}
}

func TestPairsAndFieldsByModel(t *testing.T) {
	s, err := resolve(sources{flag: flagsAre(map[string][]string{
		"model-policy": {"org/m=p2c", "a=b=random"},
		"alias":        {"gpt-4o=llama"},
		"cbr-out":      {"trace_id", "llama=user_*"},
		"cbr-in":       {"llama=user"},
	})})
	if err != nil {
		t.Fatal(err)
	}
	if s.router.Policies["org/m"] != "p2c" || s.router.Policies["a=b"] != "random" || s.proxy.Aliases["gpt-4o"] != "llama" {
		t.Errorf("policies %v, aliases %v", s.router.Policies, s.proxy.Aliases)
	}
	if s.proxy.Rules["llama"] == nil || s.proxy.Rules[""] == nil {
		t.Errorf("rules %v", s.proxy.Rules)
	}
}

func TestPairsThatAreNone(t *testing.T) {
	for name, values := range map[string][]string{
		"alias":        {"a"},
		"model-policy": {"=cost"},
		"cbr-out":      {"messages"},
		"cbr-in":       {"messages"},
		"path":         {"v1/x"},
	} {
		if _, err := resolve(sources{flag: flagsAre(map[string][]string{name: values})}); err == nil {
			t.Errorf("--%s %v was taken", name, values)
		}
	}
	if _, err := resolve(sources{flag: flagsAre(map[string][]string{"alias": {"a=b", "a=c"}})}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("error is %v", err)
	}
}

func TestHashKeyFiles(t *testing.T) {
	text := writeFile(t, "hex", "000102030405060708090a0b0c0d0e0f\n")
	raw := writeFile(t, "raw", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f")
	var keys []any
	for _, file := range []string{text, raw} {
		s, err := resolve(sources{flag: flagsAre(map[string][]string{"hash-key-file": {file}})})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, s.proxy.Key)
	}
	if keys[0] != keys[1] {
		t.Error("the same key in two notations gives two keys")
	}
	bad := writeFile(t, "bad", "secret, but no key")
	_, err := resolve(sources{flag: flagsAre(map[string][]string{"hash-key-file": {bad}})})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "want 32 hex digits") {
		t.Errorf("error is %v", err)
	}
}

func TestConfigCheck(t *testing.T) {
	good := writeFile(t, "kvca.yaml", "listen: 127.0.0.1:0\nbackend:\n  - http://a:1\n")
	if out, errs, code := kvca(t, "", "config", "check", good); code != 0 || out != good+": no faults\n" || errs != "" {
		t.Errorf("code %d, output %q, errors %q", code, out, errs)
	}
	bad := writeFile(t, "kvca.yaml", "listen: 1\nadmin: 2\n")
	_, errs, code := kvca(t, "", "config", "check", bad)
	if code != 1 || strings.Count(errs, "\n") != 2 || !strings.Contains(errs, bad+`:1: listen: "1"`) || !strings.Contains(errs, bad+`:2: admin: "2"`) {
		t.Errorf("code %d, errors %q", code, errs)
	}
	if _, _, code := kvca(t, "", "config", "check"); code != 1 {
		t.Errorf("code %d without a file", code)
	}
}

func TestShippedConfigurationHasNoFaults(t *testing.T) {
	if _, err := resolve(sources{file: "../../.deploy/kvca.yaml"}); err != nil {
		t.Error(err)
	}
}
