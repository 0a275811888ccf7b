package tenant

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// someHash is the hash of a key that tests don't need.
func someHash(n int) string { return Hash(fmt.Sprint("test key ", n)) }

// read parses a file's text as if it lay in an empty folder.
func read(t *testing.T, text string) (*snapshot, error) {
	t.Helper()
	return parse(filepath.Join(t.TempDir(), "keys.yaml"), []byte(text))
}

func mustRead(t *testing.T, text string) *snapshot {
	t.Helper()
	s, err := read(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFileSaysAllOfATenant(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "salt"), []byte(" from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parse(filepath.Join(dir, "keys.yaml"), []byte(`
# who comes without a key
anonymous:
  models: [small]
  class: 9
  limits: {requests_per_second: 0.5, burst: 10s}
tenants:
  - name: acme
    keys:
      - `+someHash(1)+`
      - {hash: `+someHash(2)+`, expires: 2027-01-31, note: "Ada's laptop"}
      - hash: "`+someHash(3)+`"
        expires: 2027-01-31T18:00:00+01:00
    models: [llama-3, "qwen*"]
    cache_salt_file: salt
    class: 0
    priority: 100
    weight: 2.5
    trusted: true
    limits:
      requests_per_second: 10
      tokens_per_second: 20000
      concurrent: 32
      burst: 2s
    per_model:
      llama-3: {concurrent: 4}
      qwen3: {tokens_per_second: 100}
  - name: plain
    cache_salt: in the file
    keys: [`+someHash(4)+`]
`))
	if err != nil {
		t.Fatal(err)
	}
	acme := &Tenant{
		Name: "acme", Models: []string{"llama-3", "qwen*"}, CacheSalt: "from a file", Class: 0, Priority: 100, Weight: 2.5, Trusted: true,
		Limits:   Limits{RequestsPerSecond: 10, TokensPerSecond: 20000, Concurrent: 32, Burst: 2 * time.Second},
		PerModel: map[string]Limits{"llama-3": {Concurrent: 4}, "qwen3": {TokensPerSecond: 100, Burst: time.Second}},
	}
	plain := &Tenant{Name: "plain", CacheSalt: "in the file", Class: 5, Weight: 1}
	anonymous := &Tenant{Name: "anonymous", Models: []string{"small"}, Class: 9, Weight: 1, Limits: Limits{RequestsPerSecond: 0.5, Burst: 10 * time.Second}}
	if want := []*Tenant{acme, plain, anonymous}; !reflect.DeepEqual(s.tenants, want) {
		t.Errorf("got %+v, %+v, %+v", *s.tenants[0], *s.tenants[1], *s.tenants[2])
	}
	if s.anonymous != s.tenants[2] || !s.salted || len(s.files) != 2 || len(s.keys) != 4 {
		t.Errorf("anonymous %v, salted %v, files %q, %d keys", s.anonymous, s.salted, s.files, len(s.keys))
	}
	for n, want := range map[int]string{1: "0001-01-01T00:00:00Z", 2: "2027-02-01T00:00:00Z", 3: "2027-01-31T17:00:00Z"} {
		k := s.keys[digestOf(fmt.Sprint("test key ", n))]
		if k == nil || k.tenant != s.tenants[0] || k.expires.UTC().Format(time.RFC3339) != want {
			t.Errorf("key %d: got %+v, want it to expire at %s", n, k, want)
		}
	}
}

func TestHashMayStandInEachOfYAMLsWays(t *testing.T) {
	hash := someHash(1)
	for _, text := range []string{
		"tenants:\n- name: a\n  keys:\n  - " + hash,
		"tenants:\n- name: a\n  keys:\n  - \"" + hash + "\" # whose",
		"tenants:\n- name: a\n  keys: [" + hash + "]",
		"tenants: [{name: a, keys: [" + hash + "]}]",
		"tenants: [{name: a, keys: ['" + hash + "']}]",
		"tenants: [{name: a, keys: [{hash: " + hash + "}]}]",
		"tenants:\n- name: a\n  keys:\n  - hash: " + hash + "\n    note: n",
		"tenants:\n- name: a\n  keys:\n  - hash: >-\n      " + hash,
		`{"tenants": [{"name": "a", "keys": ["` + hash + `"]}]}`,
		"tenants:\r\n- name: a\r\n  keys:\r\n  - " + hash + "\r\n",
	} {
		if s := mustRead(t, text); s.keys[digestOf("test key 1")] == nil {
			t.Errorf("%q: got %v", text, s.keys)
		}
	}
}

func TestFileOfNobodyButAnonymousWillDo(t *testing.T) {
	s := mustRead(t, "# "+strings.Repeat("-", 80)+"\nanonymous: {name: guests, trusted: true}")
	if len(s.tenants) != 1 || s.anonymous == nil || s.anonymous.Name != "guests" || !s.anonymous.Trusted {
		t.Errorf("got %+v", s)
	}
}

// Whoever takes the last key away in a hurry must not find the old file in force.
func TestTenantMayHaveNoKeys(t *testing.T) {
	for _, keys := range []string{"keys: []", "keys:", "class: 1"} {
		if s := mustRead(t, "tenants:\n- name: acme\n  "+keys+"\n"); len(s.keys) != 0 || len(s.tenants) != 1 {
			t.Errorf("%q: got %+v", keys, s)
		}
	}
}

func TestFaultsSayLineKeyAndWhatIsWanted(t *testing.T) {
	const head = "tenants:\n- name: acme\n  " // so that what follows is on line 3
	one, two := someHash(1), someHash(2)
	for _, c := range []struct{ text, want string }{
		{"", "there is no tenant"},
		{"[]", "keys.yaml:1: is a list: want a mapping"},
		{"tenants: {}", "keys.yaml:1: is a mapping: want a list of tenants"},
		{"tenant: []", "keys.yaml:1: tenant: no such key: want one of anonymous, tenants"},
		{"tenants:\n- class: 1", "keys.yaml:2: the tenant has no name"},
		{"tenants:\n- name: a b", `keys.yaml:2: name: "a b" is no name: want 1 to 64`},
		{head + "name: again", "keys.yaml:3: name: is there on line 2 already"},
		{head + "class: 1\n- class: 2\n  name: acme", `keys.yaml:5: name: "acme" is the tenant on line 2 already`},
		{head + "class: 10", `keys.yaml:3: class: "10": want a whole number from 0 to 9`},
		{head + "class: [1]", "keys.yaml:3: class: is a list: want a whole number"},
		{head + "priority: 50", `keys.yaml:3: priority: "50": want 0 or 100`},
		{head + "weight: 0", `keys.yaml:3: weight: "0": want a number from 0.01 to 1000`},
		{head + "weight: .nan", `keys.yaml:3: weight: ".nan": want a number`},
		{head + "trusted: yes", `keys.yaml:3: trusted: "yes": want true or false`},
		{head + "models: []", "keys.yaml:3: models: is an empty list"},
		{head + "models: [a*b]", `keys.yaml:3: models: "a*b": want`},
		{head + "models: a", "keys.yaml:3: models: is a single value: want a list"},
		{head + "rpm: 5", "keys.yaml:3: rpm: no such key: want one of"},
		{head + "limits: {rpm_limit: 5}", "keys.yaml:3: limits.rpm_limit: no such key: want requests_per_second, a 60th of it"},
		{head + "limits: {requests_per_second: 0}", "keys.yaml:3: limits.requests_per_second: 0 would be no limit"},
		{head + "limits: {concurrent: 0}", `keys.yaml:3: limits.concurrent: "0": want a whole number from 1`},
		{head + "limits: {concurrent: 1, burst: 1s}", "keys.yaml:3: limits.burst: has nothing to save up"},
		{head + "limits: {requests_per_second: 1, burst: 1}", `keys.yaml:3: limits.burst: "1": want a duration from 10ms`},
		{head + "per_model: {q*: {concurrent: 1}}", "keys.yaml:3: per_model.q*: want the name of one model"},
		{head + "models: [a]\n  per_model: {b: {concurrent: 1}}", `per_model: "b" is none of the tenant's models`},
		{head + "cache_salt: ''", "keys.yaml:3: cache_salt: holds a salt of 0 bytes"},
		{head + "cache_salt: a\n  cache_salt_file: b", "keys.yaml:4: cache_salt_file: cache_salt on line 3 says it already"},
		{head + "cache_salt_file: none", `none" can't be read`},
		{head + "keys: {}", "keys.yaml:3: keys: is a mapping: want a list of hashes"},
		{head + "keys: [" + one + ", " + one + "]", "keys.yaml:3: keys: is the key on line 3 already"},
		{head + "keys: [sha256:12]", "keys.yaml:3: keys: has 2 characters after sha256:, want 64"},
		{head + "keys: [{hash: " + one + ", expires: soon}]", "keys.yaml:3: keys.expires: is neither: want a day such as 2027-01-31"},
		{head + "keys: [{hash: " + one + ", sha256: " + two[7:] + "}]", "keys.yaml:3: keys.sha256: a second hash"},
		{head + "keys: [{note: who}]", "keys.yaml:3: keys: has no hash"},
		{head + "keys: [{hash: " + one + ", note: " + strings.Repeat("n", 201) + "}]", "keys.yaml:3: keys.note: has 201 bytes"},
		{"anonymous: {keys: [" + two + "]}", "keys.yaml:1: anonymous.keys: no such key"},
		{head + "class: &a 1", "YAML's Anchor"},
		{head + "class: 1\n---\ntenants: []", "keys.yaml:5: a second document"},
		{head + "class: [1", "keys.yaml:3: no valid YAML"},
		{strings.Repeat("[", 40), "nests 40 deep"},
		{strings.Repeat("- ", 500), "nests 500 deep"},
	} {
		_, err := read(t, c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	_, err := read(t, "tenants:\n- name: a\n  class: x\n  weight: y\n  unknown: z\n- name: b c\n")
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four lines, got %v", err)
	}
	_, err = read(t, "tenants:\n"+strings.Repeat("- class: x\n", 100))
	if err == nil || strings.Count(err.Error(), "\n") != maxFaults || !strings.HasSuffix(err.Error(), "and 150 faults more") {
		t.Errorf("want %d lines and a count of the rest, got %v", maxFaults, err)
	}
}

// Whatever an operator puts where, a fault never shows what may be a key or a salt.
func TestFaultsShowNoSecret(t *testing.T) {
	const secret = "kvca-SECRET0SECRET0SECRET0SECRET0SECRET0SECRET0"
	const head = "tenants:\n- name: acme\n  "
	for _, text := range []string{
		"keys: [" + secret + "]",
		"keys: " + secret,
		"keys: {" + secret + ": 1}",
		"keys: [{" + secret + ": note}]",
		"keys: [{" + secret + ": note, " + secret + ": note}]",
		"keys: [{hash: " + secret + "}]",
		"keys: [{hash: [" + secret + "]}]",
		"keys: [sha256:" + secret + "]",
		"keys: [sha256:" + secret + secret[:17] + "]",
		"keys: [\"" + secret,
		"keys:\n  - " + secret + ": [",
		"cache_salt: \"" + secret + "\\n\"",
		"cache_salt: [" + secret + "]",
		"cache_salt: |" + secret,
		"cache_salt: !" + secret + " a",
		"cache_salt: *" + secret,
		"cache_salt: " + strings.Repeat(secret, 6),
	} {
		_, err := read(t, head+text+"\n")
		if err == nil || strings.Contains(err.Error(), "SECRET0") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestPlainKeyIsRefusedWithTheCommandToRun(t *testing.T) {
	_, err := read(t, "tenants:\n- name: acme\n  keys: [sk-1234]\n")
	if err == nil || !strings.Contains(err.Error(), "kvca key --hash") {
		t.Errorf("got %v", err)
	}
}

func TestFileIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("tenants:\n")
	for i := range maxTenants + 2 {
		fmt.Fprintf(&b, "- name: t%d\n", i)
	}
	if _, err := read(t, b.String()); err == nil || !strings.Contains(err.Error(), "one tenant more than 5000") || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("got %v", err)
	}
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(path, make([]byte, maxFileBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, nil); err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("tenants:\n- name: acme\n  keys:\n  - " + someHash(1) + "\n  - {hash: " + someHash(2) + ", expires: 2027-01-31, note: n}\n  limits: {requests_per_second: 1, burst: 2s}\n  per_model: {m: {concurrent: 1}}\n")
	f.Add("anonymous: {models: [a, b*], class: 9, weight: 0.5, priority: 100, trusted: true, cache_salt: s}\n")
	f.Add("tenants: [~, 1, [], {}, *a, &b c, !!d e, <<: f]")
	f.Add("? a\n: b\n---\n|\n x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "cache_salt_file") {
			t.Skip() // reads what the text says
		}
		s, err := parse("keys.yaml", []byte(text))
		if err != nil {
			return
		}
		if len(s.tenants) == 0 {
			t.Fatal("no tenant and no fault")
		}
		names := make(map[string]bool)
		for _, u := range s.tenants {
			if u.Name == "" || names[u.Name] || u.Class < 0 || u.Class > 9 || !(u.Weight > 0) || u.Limits.Concurrent < 0 || !(u.Limits.RequestsPerSecond >= 0) {
				t.Fatalf("got %+v", *u)
			}
			names[u.Name] = true
		}
		for d, k := range s.keys {
			if k.digest != d || k.tenant == nil || !names[k.tenant.Name] {
				t.Fatalf("got %+v", *k)
			}
		}
	})
}
