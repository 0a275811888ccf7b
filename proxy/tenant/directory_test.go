package tenant

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvca/state/virtualtime"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// take returns what was logged since the last call.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.text.Reset()
	return j.text.String()
}

func openLogged(t *testing.T, text string) (*Directory, *journal) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	rewrite(t, path, text)
	var j journal
	d, err := Open(path, slog.New(slog.NewTextHandler(&j, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return d, &j
}

func (d *Directory) has(key string) bool {
	_, err := d.Find(http.Header{"X-Api-Key": {key}})
	return err == nil
}

func TestReloadLogsTheDifferenceInNames(t *testing.T) {
	d, log := openLogged(t, "tenants:\n- {name: gone, keys: ["+someHash(1)+"]}\n- {name: same, keys: ["+someHash(2)+"]}\n- {name: other, keys: ["+someHash(3)+"], class: 1, cache_salt: before}\n")
	log.take()
	rewrite(t, d.path, "tenants:\n- {name: fresh, keys: ["+someHash(1)+"]}\n- {name: same, keys: ["+someHash(2)+"]}\n- {name: other, keys: ["+someHash(4)+"], class: 2, cache_salt: after, per_model: {m: {concurrent: 1}}}\nanonymous: {}\n")
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	got := log.take()
	for _, want := range []string{`added="fresh, anonymous"`, "removed=gone", `changed="other: cache_salt class per_model keys"`, "tenants=4 keys=3"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	for _, secret := range []string{"before", "after", someHash(4)[7:20], "same"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s in %s", secret, got)
		}
	}
	if err := d.Reload(); err != nil || !strings.Contains(log.take(), "nothing changed") {
		t.Errorf("second reload: %v, %s", err, log.take())
	}
}

func TestReloadTakesAllOrNothing(t *testing.T) {
	d, _ := openLogged(t, twoTenants(""))
	rewrite(t, d.path, "tenants:\n- {name: acme, keys: ["+Hash("new")+"]}\n- {name: bad, class: 99}\n")
	before := d.Tenants()
	if err := d.Reload(); err == nil || !strings.Contains(err.Error(), "keys.yaml:3: class") {
		t.Errorf("got %v", err)
	}
	if after := d.Tenants(); !d.has(acmeKey) || d.has("new") || len(after) != 2 || after[0] != before[0] {
		t.Errorf("half of it was taken: %v", after)
	}
	if err := os.Remove(d.path); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(); !errors.Is(err, os.ErrNotExist) || !d.has(acmeKey) {
		t.Errorf("got %v", err)
	}
	if ok, failed := testutil.ToFloat64(d.metrics.reload[reloadOK]), testutil.ToFloat64(d.metrics.reload[reloadFailed]); ok != 0 || failed != 2 {
		t.Errorf("counted %v ok, %v failed", ok, failed)
	}
}

// watched runs a directory in virtual time.
func watched(t *testing.T, text string, play func(d *Directory, log *journal)) {
	d, log := openLogged(t, text)
	log.take()
	virtualtime.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			d.Run(ctx)
		}()
		time.Sleep(time.Millisecond) // so that steps of pollEvery come between two looks
		play(d, log)
		cancel()
		<-ended
	})
}

func TestChangedFileIsTakenOnceItStandsStill(t *testing.T) {
	watched(t, twoTenants(""), func(d *Directory, log *journal) {
		time.Sleep(5 * pollEvery)
		if got := log.take(); got != "" {
			t.Errorf("nothing changed, logged %s", got)
		}
		rewrite(t, d.path, "tenants:\n- {name: acme}\n") // half written, and valid
		time.Sleep(pollEvery)
		rewrite(t, d.path, twoTenants("- {name: third, keys: ["+Hash("third")+"]}\n"))
		time.Sleep(pollEvery)
		if !d.has(acmeKey) || d.has("third") {
			t.Error("a file that changes was taken")
		}
		time.Sleep(pollEvery)
		if got := log.take(); !d.has("third") || strings.Count(got, "\n") != 1 || !strings.Contains(got, "added=third") {
			t.Errorf("logged %s", got)
		}
	})
}

func TestFileWithFaultsIsLoggedOnce(t *testing.T) {
	watched(t, twoTenants(""), func(d *Directory, log *journal) {
		rewrite(t, d.path, "tenants: [}")
		time.Sleep(10 * pollEvery)
		if got := log.take(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "stays in force") || !d.has(acmeKey) {
			t.Errorf("logged %s", got)
		}
		os.Remove(d.path)
		time.Sleep(10 * pollEvery)
		if got := log.take(); strings.Count(got, "\n") != 1 || !d.has(acmeKey) {
			t.Errorf("logged %s", got)
		}
		rewrite(t, d.path, "anonymous: {}")
		time.Sleep(3 * pollEvery)
		if d.has(acmeKey) || len(d.Tenants()) != 1 {
			t.Error("the repaired file was not taken")
		}
	})
}

// Mounted secrets change by a link to another folder, with all times as they like.
func TestFileBehindAChangedLinkIsTaken(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1e9, 0)
	for name, key := range map[string]string{"one": "key-1", "two": "key-2"} {
		path := filepath.Join(dir, name)
		rewrite(t, path, "tenants:\n- {name: acme, keys: ["+Hash(key)+"]}\n")
		os.Chtimes(path, at, at)
	}
	link := filepath.Join(dir, "keys.yaml")
	os.Symlink("one", link)
	d, err := Open(link, nil)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(link)
	os.Symlink("two", link)
	if d.changed() || !d.changed() {
		t.Error("want the change seen at the second look")
	}
	if err := d.Reload(); err != nil || !d.has("key-2") {
		t.Errorf("got %v", err)
	}
}

func TestSaltFilesAreWatchedToo(t *testing.T) {
	dir := t.TempDir()
	salt := filepath.Join(dir, "salt")
	rewrite(t, salt, "one")
	path := filepath.Join(dir, "keys.yaml")
	rewrite(t, path, "anonymous: {cache_salt_file: salt}")
	d, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, salt, "other")
	if d.changed() || !d.changed() {
		t.Error("want the change seen at the second look")
	}
	if err := d.Reload(); err != nil || d.Tenants()[0].CacheSalt != "other" || d.changed() {
		t.Errorf("got %v, %q", err, d.Tenants()[0].CacheSalt)
	}
}

func TestOpenFileIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		mode os.FileMode
		text string
		want string
	}{
		{0o600, "anonymous: {cache_salt: s}", ""},
		{0o644, "anonymous: {}", ""},
		{0o644, "anonymous: {cache_salt: s}", "may read"},
		{0o646, "anonymous: {}", "may write"},
	} {
		d, log := openLogged(t, c.text)
		log.take()
		if err := os.Chmod(d.path, c.mode); err != nil {
			t.Fatal(err)
		}
		d.warn(d.snapshot.Load())
		if got := log.take(); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v %s: logged %q", c.mode, c.text, got)
		}
	}
}

func TestTenantsWithoutAValidKeyAreWarnedOf(t *testing.T) {
	_, log := openLogged(t, "tenants:\n- {name: empty}\n- {name: late, keys: [{hash: "+someHash(1)+", expires: 2001-01-01}]}\n- {name: fine, keys: ["+someHash(2)+"]}\nanonymous: {}\n")
	if got := log.take(); !strings.Contains(got, `tenants="empty, late"`) {
		t.Errorf("logged %s", got)
	}
}

func TestRequestsAreFoundWhileTheFileChanges(t *testing.T) {
	d, _ := openLogged(t, twoTenants(""))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if !d.has(acmeKey) {
					t.Error("a key that is in both files was not found")
					return
				}
			}
		})
	}
	for i := range 20 {
		rewrite(t, d.path, twoTenants(strings.Repeat("\n", i)))
		if err := d.Reload(); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}
