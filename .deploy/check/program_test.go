package check

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// kvca builds the program once, and runs it with a deadline.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kvca-check")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program = filepath.Join(dir, "kvca")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/kvca")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	cancel()
	code := 1
	if err != nil {
		fmt.Fprintf(os.Stderr, "build kvca: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

func kvca(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}

// secrets lays out the files that settings name, of good content, but for those
// that are given.
func secrets(t *testing.T, instead map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hash.key":       "00112233445566778899aabbccddeeff",
		"cluster.secret": "a secret that is long enough for it\n",
		"keys.yaml":      strings.ReplaceAll(instead["keys.yaml"], "REPLACE", strings.Repeat("0", 64)),
	} {
		if bad, ok := instead[name]; ok && name != "keys.yaml" {
			text = bad
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// placeholders are the example's secrets, by the files that they become.
func placeholders(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, s := range All[*core.Secret](exampleSecrets(t)) {
		for key, text := range s.StringData {
			files[key] = text
		}
	}
	return files
}

// settings writes a file of settings with its secrets where dir has them.
func settings(t *testing.T, text, dir string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kvca.yaml")
	if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, mounted+"secrets", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSettingsAreAccepted(t *testing.T) {
	dir := secrets(t, map[string]string{"keys.yaml": placeholders(t)["keys.yaml"]})
	for name, text := range map[string]string{
		"kubernetes": string(read(t, filepath.Join(manifests, "kvca.yaml"))),
		"chart":      settingsOf(t, charted(t, nil)),
		"backends":   settingsOf(t, charted(t, values(t, "backends: [a=http://a:1, {id: b, url: 'http://b:1', weight: 2}]"))),
		"service":    string(read(t, "../kvca.yaml")),
	} {
		if out, err := kvca(t, "config", "check", settings(t, text, dir)); err != nil {
			t.Errorf("settings of %s: %v\n%s", name, err, out)
		}
	}
}

func TestPlaceholdersOfSecretsAreRefused(t *testing.T) {
	examples := placeholders(t)
	text := string(read(t, filepath.Join(manifests, "kvca.yaml")))
	for _, name := range []string{"hash.key", "cluster.secret"} {
		dir := secrets(t, map[string]string{"keys.yaml": examples["keys.yaml"], name: examples[name]})
		out, err := kvca(t, "config", "check", settings(t, text, dir))
		if err == nil || !strings.Contains(out, name) {
			t.Errorf("the placeholder of %s was taken: want an error that names it, found\n%s", name, out)
		}
	}
}

// Examples in comments are to be taken as they are.
func TestCommentedExamplesUseFlagsThatExist(t *testing.T) {
	text := regexp.MustCompile(`(?m)^#([a-z_]+:|  - )`).ReplaceAllString(string(read(t, "../kvca.yaml")), "$1")
	keys, err := Keys([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, key := range keys {
		used = append(used, OfKey(key))
	}
	flagsExist(t, used)
	if len(used) < 20 {
		t.Errorf("%d settings: want those in comments, too", len(used))
	}
}

func TestServiceUsesFlagsThatExist(t *testing.T) {
	started := regexp.MustCompile(`(?m)^Exec[A-Za-z]+=\S+ (.*)$`).FindAllStringSubmatch(string(read(t, "../kvca.service")), -1)
	var used []string
	for _, line := range started {
		used = append(used, OfArguments(strings.Fields(line[1]))...)
	}
	flagsExist(t, used)
}
