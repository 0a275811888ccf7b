package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kvca/proxy/backend"
	"kvca/proxy/tenant"
)

// configured is a node that runs by a file, and its log.
type configured struct {
	*running
	file string
	log  *lockedBuffer
}

const twoBackends = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
gossip: "off"
simulate: 1
backend:
  - a=http://127.0.0.1:1
  - {id: b, url: "http://127.0.0.1:2", weight: 2}
`

// runFile starts a node whose configuration is a file with text.
func runFile(t *testing.T, text string) *configured {
	t.Helper()
	c := &configured{file: filepath.Join(t.TempDir(), "kvca.yaml"), log: new(lockedBuffer)}
	c.write(t, text)
	src := sources{file: c.file}
	s, err := resolve(src)
	if err != nil {
		t.Fatal(err)
	}
	s.file, s.again = c.file, func() (*settings, error) { return resolve(src) }
	level := new(slog.LevelVar)
	n, err := newNode(s, newLogger(c.log, "text", level))
	if err != nil {
		t.Fatal(err)
	}
	n.level = level
	c.running = begun(t, n, &http.Client{Transport: &http.Transport{}, Timeout: patience})
	return c
}

func (c *configured) write(t *testing.T, text string) { overwrite(t, c.file, text) }

func (c *configured) backendIDs() []string {
	var ids []string
	for _, b := range c.pool.All() {
		if !strings.HasPrefix(b.ID, "sim") {
			ids = append(ids, b.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestReloadPutsAllChangesInForce(t *testing.T) {
	c := runFile(t, twoBackends)
	changed := strings.Replace(twoBackends, "a=http://127.0.0.1:1", "c=http://127.0.0.1:3", 1)
	changed = strings.Replace(changed, "weight: 2", "weight: 5", 1)
	c.write(t, changed+"alias: [other=sim]\npolicy: p2c\nlog_level: warn\n")
	list, err := c.reload()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, d := range list {
		texts = append(texts, d.String())
	}
	want := []string{
		"backend: a=http://127.0.0.1:1 {id: b, url: http://127.0.0.1:2, weight: 2} -> c=http://127.0.0.1:3 {id: b, url: http://127.0.0.1:2, weight: 5}",
		"policy: cost -> p2c", "alias: none -> other=sim", "log_level: info -> warn",
	}
	if !slices.Equal(texts, want) {
		t.Errorf("differences: %q", texts)
	}
	if got := c.backendIDs(); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("backends %v", got)
	}
	for _, b := range c.pool.All() {
		if b.ID == "b" && c.pool.Of(b).Config().Weight != 5 {
			t.Errorf("b weighs %v", c.pool.Of(b).Config().Weight)
		}
	}
	if c.router.PolicyOf("sim") != "p2c" || c.level.Level() != slog.LevelWarn {
		t.Errorf("policy %s, level %s", c.router.PolicyOf("sim"), c.level.Level())
	}
	if answer, text := c.chat(t, `{"model":"other","messages":[{"role":"user","content":"hi"}]}`); answer.StatusCode != http.StatusOK {
		t.Errorf("the new alias: %s %s", answer.Status, text)
	}
	if _, err := c.reload(); err != errUnchanged {
		t.Errorf("a second reload: %v", err)
	}
}

func TestReloadIsAllOrNothing(t *testing.T) {
	c := runFile(t, twoBackends)
	if err := c.pool.Add(backend.Config{ID: "mine", URL: "http://127.0.0.1:9"}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ name, text, want string }{
		{"a fault", twoBackends + "policy: p2c\nalias: [x]\n", "alias"},
		{"a change that needs a restart", strings.Replace(twoBackends, "simulate: 1", "simulate: 2", 1) + "policy: p2c\n", "simulate: 1 -> 2"},
		{"a backend that is there already", twoBackends + "  - mine=http://127.0.0.1:8\npolicy: p2c\n", "mine"},
		{"an alias of an alias", twoBackends + "alias: [x=y, y=z]\npolicy: p2c\n", "alias"},
		{"no YAML", "listen: [", "YAML"},
	} {
		c.write(t, bad.text)
		if _, err := c.reload(); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v", bad.name, err)
		}
		if c.router.PolicyOf("sim") != "cost" || !slices.Equal(c.backendIDs(), []string{"a", "b", "mine"}) {
			t.Errorf("%s: policy %s, backends %v", bad.name, c.router.PolicyOf("sim"), c.backendIDs())
		}
	}
}

func TestASignalReloads(t *testing.T) {
	c := runFile(t, twoBackends)
	c.write(t, twoBackends+"policy: p2c\nalias: [other=sim]\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	c.logs(t, "reload: in force", "policy: cost -> p2c; alias: none -> other=sim")
	// The file that changed is noticed by itself, and one at fault is refused.
	c.write(t, twoBackends+"policy: none\n")
	c.logs(t, "reload: refused", "policy")
}

// A file with a fault must not take from clients what they have: what was read before
// stays in force, and one line says which file it is and what is wrong with it.
func TestASignalLeavesInForceWhatFaultyFilesHeld(t *testing.T) {
	one, other := newSecured(t), newSecured(t)
	tenants := func(key string) string {
		return "tenants:\n- name: acme\n  keys: [\"" + key + "\"]\n"
	}
	newKey, newHash := tenant.NewKey()
	oldKey, oldHash := tenant.NewKey()
	keys := write(t, "keys.yaml", tenants(oldHash))
	s := onItsOwn(t, map[string][]string{
		"simulate": {"1"}, "simulate-speed": {"100"}, "tls-cert": {one.cert}, "tls-key": {one.key}, "keys-file": {keys},
	})
	s.again = func() (*settings, error) { return s, nil }
	log := new(lockedBuffer)
	n, err := newNode(s, newLogger(log, "text", slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	c := &configured{running: begun(t, n, one.http), log: log}
	goodCert, otherCert := contentOf(t, one.cert), contentOf(t, other.cert)

	for _, f := range []struct{ name, file, good, bad, fault string }{
		{"a key in place of its hash", keys, tenants(oldHash), tenants(newKey), "keys.yaml:3: keys: is no hash"},
		{"a limit that can't be", keys, tenants(oldHash), tenants(oldHash) + "  limits: {concurrent: -1}\n", "keys.yaml:4: limits"},
		{"no certificate", one.cert, goodCert, "what is no certificate", "failed to find any PEM data in certificate"},
		{"another key's certificate", one.cert, goodCert, otherCert, "private key does not match public key"},
	} {
		overwrite(t, f.file, f.bad)
		var said []string
		for line := range strings.Lines(c.hangUp(t)) {
			if strings.Contains(line, "level=ERROR") {
				said = append(said, line)
			}
		}
		if len(said) != 1 || !strings.Contains(said[0], "stays in force") || !strings.Contains(said[0], f.file) || !strings.Contains(said[0], f.fault) {
			t.Errorf("%s: want one line that names the file and has %q:\n%s", f.name, f.fault, strings.Join(said, ""))
		}
		one.http.CloseIdleConnections() // the next one sees the certificate that is in force
		if status, text := one.ask(t, http.MethodPost, c.ClientURL()+"/v1/chat/completions", oldKey, aChat); status != http.StatusOK {
			t.Errorf("%s: the old key has %d %s", f.name, status, text)
		}
		overwrite(t, f.file, f.good)
	}

	// What is good again comes into force.
	overwrite(t, keys, tenants(newHash))
	c.hangUp(t)
	for key, want := range map[string]int{oldKey: http.StatusUnauthorized, newKey: http.StatusOK} {
		if status, text := one.ask(t, http.MethodPost, c.ClientURL()+"/v1/chat/completions", key, aChat); status != want {
			t.Errorf("after the keys were changed: %d %s, want %d", status, text, want)
		}
	}
}

// hangUp sends the process a SIGHUP and returns what the node logs until it is through
// with it.
func (c *configured) hangUp(t *testing.T) (said string) {
	t.Helper()
	before := len(c.log.String())
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if said = c.log.String()[before:]; strings.Contains(said, "reload: nothing has changed") {
			return said
		}
	}
	t.Fatalf("the signal was not followed:\n%s", c.log)
	return ""
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logs waits for a line of the log that holds all of the texts.
func (c *configured) logs(t *testing.T, texts ...string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for line := range strings.Lines(c.log.String()) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				return
			}
		}
	}
	t.Fatalf("no line has %q:\n%s", texts, c.log)
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
