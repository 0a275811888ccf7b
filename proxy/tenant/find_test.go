package tenant

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// open writes a keys file and opens it.
func open(t testing.TB, text string) *Directory {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	rewrite(t, path, text)
	d, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func rewrite(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	acmeKey  = "kvca-acme"
	otherKey = "kvca-other"
	oldKey   = "kvca-old"
)

func twoTenants(extra string) string {
	return "tenants:\n- name: acme\n  keys: [" + Hash(acmeKey) + ", {hash: " + Hash(oldKey) + ", expires: 2001-02-03}]\n- name: other\n  keys: [" + Hash(otherKey) + "]\n" + extra
}

func TestKeyIsFoundWhereverClientsPutIt(t *testing.T) {
	d := open(t, twoTenants(""))
	for _, c := range []struct {
		header http.Header
		name   string
		err    error
	}{
		{http.Header{"Authorization": {"Bearer " + acmeKey}}, "acme", nil},
		{http.Header{"Authorization": {"bearer   " + acmeKey + " "}}, "acme", nil},
		{http.Header{"X-Api-Key": {otherKey}}, "other", nil},
		{http.Header{"Api-Key": {otherKey}}, "other", nil},
		{http.Header{"Authorization": {"Bearer " + acmeKey}, "X-Api-Key": {acmeKey}, "Api-Key": {acmeKey}}, "acme", nil},
		{http.Header{"Authorization": {"Bearer "}, "X-Api-Key": {acmeKey}}, "acme", nil},
		{http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}, "X-Api-Key": {acmeKey}}, "acme", nil},
		{http.Header{"Authorization": {"Bearer " + acmeKey}, "X-Api-Key": {otherKey}}, "", ErrTwoKeys},
		{http.Header{"X-Api-Key": {acmeKey, otherKey}}, "", ErrTwoKeys},
		{http.Header{"X-Api-Key": {acmeKey}, "Api-Key": {"wrong"}}, "", ErrTwoKeys},
		{http.Header{}, "", ErrNoKey},
		{http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}, "", ErrNoKey},
		{http.Header{"Authorization": {acmeKey}}, "", ErrNoKey},
		{http.Header{"Authorization": {"Bearer"}, "X-Api-Key": {""}}, "", ErrNoKey},
		{http.Header{"Authorization": {"Bearer " + acmeKey + "x"}}, "", ErrUnknownKey},
		{http.Header{"Authorization": {"Bearer " + Hash(acmeKey)}}, "", ErrUnknownKey},
		{http.Header{"X-Api-Key": {strings.Repeat("k", 1<<20)}}, "", ErrUnknownKey},
		{http.Header{"X-Api-Key": {oldKey}}, "", ErrExpiredKey},
	} {
		found, err := d.Find(c.header)
		if !errors.Is(err, c.err) || (found == nil) != (c.name == "") || found != nil && found.Name != c.name {
			t.Errorf("%.80v: got %+v, %v", c.header, found, err)
		}
		if err != nil && strings.Contains(err.Error(), "kvca-") {
			t.Errorf("%v shows the key", err)
		}
	}
}

func TestKeyOfMaximalLengthIsFound(t *testing.T) {
	key := strings.Repeat("k", MaxKeyBytes)
	d := open(t, "tenants:\n- name: acme\n  keys: ["+Hash(key)+"]\n")
	if found, err := d.Find(http.Header{"X-Api-Key": {key}}); err != nil || found.Name != "acme" {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestAnonymousIsForRequestsWithoutAKeyOnly(t *testing.T) {
	d := open(t, twoTenants("anonymous: {class: 9}\n"))
	if found, err := d.Find(http.Header{}); err != nil || found.Name != "anonymous" {
		t.Errorf("got %v, %v", found, err)
	}
	for _, key := range []string{"wrong", oldKey} {
		if _, err := d.Find(http.Header{"X-Api-Key": {key}}); !errors.Is(err, ErrUnknownKey) {
			t.Errorf("%s: got %v", key, err)
		}
	}
}

func TestKeyCountsUntilItExpires(t *testing.T) {
	d := open(t, "tenants:\n- name: acme\n  keys: [{hash: "+Hash(acmeKey)+", expires: 2027-01-31}]\n")
	h := http.Header{"X-Api-Key": {acmeKey}}
	end := time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)
	d.now = func() time.Time { return end.Add(-1) }
	if _, err := d.Find(h); err != nil {
		t.Errorf("in time: %v", err)
	}
	d.now = func() time.Time { return end }
	if _, err := d.Find(h); !errors.Is(err, ErrExpiredKey) || !errors.Is(err, ErrUnknownKey) {
		t.Errorf("too late: %v", err)
	}
}

func TestEachResultIsCounted(t *testing.T) {
	d := open(t, twoTenants(""))
	reg := prometheus.NewPedanticRegistry()
	if err := d.Register(reg); err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Header{
		{"X-Api-Key": {acmeKey}}, {"X-Api-Key": {otherKey}}, {}, {"X-Api-Key": {"wrong"}}, {"X-Api-Key": {oldKey}}, {"X-Api-Key": {"a", "b"}},
	} {
		d.Find(h)
	}
	want := `
		# HELP kvca_auth_total Requests by what became of their key: ok, anonymous for none where that is allowed, else missing, unknown, expired, or ambiguous for two that differ.
		# TYPE kvca_auth_total counter
		kvca_auth_total{result="ambiguous"} 1
		kvca_auth_total{result="anonymous"} 0
		kvca_auth_total{result="expired"} 1
		kvca_auth_total{result="missing"} 1
		kvca_auth_total{result="ok"} 2
		kvca_auth_total{result="unknown"} 1
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "kvca_auth_total"); err != nil {
		t.Error(err)
	}
}

func TestKeysAreHashedAsOthersDo(t *testing.T) {
	// printf abc | sha256sum
	if got := Hash("abc"); got != "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("got %s", got)
	}
	plain, hash := NewKey()
	if len(plain) != 48 || !strings.HasPrefix(plain, "kvca-") || Hash(plain) != hash || CheckKey(plain) != nil {
		t.Errorf("got %s, %s", plain, hash)
	}
}

func FuzzFind(f *testing.F) {
	d := open(f, twoTenants(""))
	f.Add("Bearer "+acmeKey, "", otherKey)
	f.Add("bearer\t"+acmeKey, acmeKey, "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		found, err := d.Find(http.Header{"Authorization": {a}, "X-Api-Key": {b}, "Api-Key": {c}})
		if (found == nil) == (err == nil) {
			t.Fatalf("got %v, %v", found, err)
		}
		for _, k := range []string{acmeKey, otherKey} {
			if found != nil && (found.Name == "acme") == (k == acmeKey) && !strings.Contains(a+" "+b+" "+c, k) {
				t.Fatalf("%s without its key", found.Name)
			}
		}
	})
}
