package main

import (
	"net/http"
	"strings"
	"testing"

	"kvca/proxy/tenant"
)

// opens is the tenant that a file with the entry gives the key's owner.
func opens(t *testing.T, entry, key string) *tenant.Tenant {
	t.Helper()
	d, err := tenant.Open(writeFile(t, "keys.yaml", "tenants:\n- name: acme\n  keys:\n  "+entry+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := d.Find(http.Header{"Authorization": {"Bearer " + key}})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestNewKeyAndItsEntryFitTogether(t *testing.T) {
	for _, args := range [][]string{{"key"}, {"key", "--note", `Ada's "laptop": # 1`}} {
		out, errs, code := kvca(t, "", args...)
		key, entry, ok := strings.Cut(strings.TrimSuffix(out, "\n"), "\n")
		if code != 0 || errs != "" || !ok || strings.Contains(entry, key) {
			t.Fatalf("%v: code %d, output %q, errors %q", args, code, out, errs)
		}
		if found := opens(t, entry, key); found.Name != "acme" {
			t.Errorf("%v: the key is %q's", args, found.Name)
		}
	}
}

func TestNewKeysDiffer(t *testing.T) {
	one, _, _ := kvca(t, "", "key")
	two, _, _ := kvca(t, "", "key")
	if one == two {
		t.Errorf("both are %q", one)
	}
}

func TestGivenKeyIsHashedAndNotShown(t *testing.T) {
	const key = "sk-0123456789abcdefghij"
	for _, in := range []string{key, key + "\n", key + "\r\n", key + "\nmore"} {
		out, errs, code := kvca(t, in, "key", "--hash", "--note", "theirs")
		if code != 0 || errs != "" || strings.Contains(out, key) || strings.Count(out, "\n") != 1 {
			t.Fatalf("%q: code %d, output %q, errors %q", in, code, out, errs)
		}
		opens(t, out, key)
	}
}

func TestKeyRefusals(t *testing.T) {
	long := strings.Repeat("k", tenant.MaxKeyBytes+1)
	for in, want := range map[string]string{"": "0 bytes", "\n": "0 bytes", "two words of a key here": "space", "kléé": "ASCII", long: "want 1 to 256"} {
		out, errs, code := kvca(t, in, "key", "--hash")
		if code != 1 || out != "" || !strings.Contains(errs, want) || in != "" && in != "\n" && strings.Contains(errs, in) {
			t.Errorf("%.20q: code %d, output %q, errors %q", in, code, out, errs)
		}
	}
	if out, errs, code := kvca(t, "", "key", "--note", "two\nlines"); code != 1 || out != "" || !strings.Contains(errs, "--note") {
		t.Errorf("code %d, output %q, errors %q", code, out, errs)
	}
	if _, errs, code := kvca(t, "", "key", "sk-secret"); code != 1 || !strings.Contains(errs, "standard input") || strings.Contains(errs, "sk-secret") {
		t.Errorf("code %d, errors %q", code, errs)
	}
}

func TestShortKeyIsHashedWithAWarning(t *testing.T) {
	out, errs, code := kvca(t, "sk-1234\n", "key", "--hash")
	if code != 0 || out != `- "`+tenant.Hash("sk-1234")+"\"\n" || !strings.Contains(errs, "warning: a key of 7 characters") || strings.Contains(errs, "sk-1234") {
		t.Errorf("code %d, output %q, errors %q", code, out, errs)
	}
}
