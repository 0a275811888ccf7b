package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// example is a release of a tiny tree, whose programs are no programs.
func example(t *testing.T, version string) *release {
	t.Helper()
	r := &release{root: t.TempDir(), out: t.TempDir(), work: t.TempDir(), version: version, date: time.Unix(1790000000, 0).UTC()}
	files := map[string][]string{
		r.root: {"LICENSE", "README.md", "CHANGELOG.md", ".deploy/kvca.service", ".deploy/kvca.yaml"},
		r.work: {noticeFile, "kvca.bash", "_kvca", "kvca.fish", "linux_amd64/kvca", "darwin_arm64/kvca"},
	}
	for dir, names := range files {
		for _, name := range names {
			write(t, filepath.Join(dir, name), "content of "+name)
		}
	}
	return r
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestArchivesOfEqualTreesAreEqual(t *testing.T) {
	var made [][]byte
	for range 2 {
		r := example(t, "1.2.3")
		if err := r.archive(platforms[0]); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(r.out, "kvca_1.2.3_linux_amd64.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, text)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two archives of equal trees differ")
	}
}

func TestArchiveHasOneFolderWithThePlatformsFiles(t *testing.T) {
	r := example(t, "1.2.3")
	for _, p := range []platform{platforms[0], platforms[2]} {
		if err := r.archive(p); err != nil {
			t.Fatal(err)
		}
		folder := "kvca_1.2.3_" + p.os + "_" + p.arch + "/"
		names := entries(t, r.result(p, ".tar.gz"), folder)
		if slices.Contains(names, "kvca.service") != (p.os == "linux") || !slices.Contains(names, "completions/_kvca") || names[0] != "kvca" {
			t.Errorf("archive for %v has %q", p, names)
		}
	}
}

// entries are the names in an archive, behind the folder that all have to be in.
func entries(t *testing.T, name, folder string) (names []string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		rest, ok := strings.CutPrefix(h.Name, folder)
		if !ok || h.Uid != 0 || h.ModTime.Unix() != 1790000000 {
			t.Errorf("%s: uid %d, time %v: want it in %s, of root, at the commit's time", h.Name, h.Uid, h.ModTime, folder)
		}
		names = append(names, rest)
	}
}

func TestDebianVersions(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":            "1.2.3",
		"1.2.3":             "1.2.3",
		"v1.2.3-4-gabcdef0": "1.2.3+4+gabcdef0",
		"abcdef0":           "0~20260921.135320.abcdef0",
		"1234567":           "0~20260921.135320.1234567",
		"abcdef0-dirty":     "0~20260921.135320.abcdef0.dirty",
		"v1.2.3-dirty":      "1.2.3+dirty",
	} {
		r := &release{version: version, date: time.Date(2026, 9, 21, 13, 53, 20, 0, time.UTC)}
		if got := r.debVersion(); got != want {
			t.Errorf("version %s is %s for Debian: want %s", version, got, want)
		}
	}
}

func TestUnitOfThePackageRunsAsItsUser(t *testing.T) {
	r := &release{root: "../.."}
	name := filepath.Join(t.TempDir(), "kvca.service")
	if err := r.unit(name); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for want, there := range map[string]bool{"ExecStart=/usr/bin/kvca ": true, "\nUser=kvca\n": true, "DynamicUser": false, "/usr/local": false} {
		if strings.Contains(string(text), want) != there {
			t.Errorf("the unit has %q: %v, want %v", want, !there, there)
		}
	}
}

func TestUnitThatChangedIsNoticed(t *testing.T) {
	r := example(t, "1.2.3")
	if err := r.unit(filepath.Join(r.out, "kvca.service")); err == nil {
		t.Error("a unit without the lines to change was taken: want an error")
	}
}

func TestBillsDoNotDependOnTheRun(t *testing.T) {
	bill := func(time, hash string) string {
		return `{"metadata":{"timestamp":"` + time + `","tools":{"components":[{"name":"t","hashes":[{"content":"` + hash + `"}]}]}},"components":[{"name":"c","hashes":[1]}]}`
	}
	a, errA := settle([]byte(bill("1", "x")), "now")
	b, errB := settle([]byte(bill("2", "y")), "now")
	if errA != nil || errB != nil || !bytes.Equal(a, b) || !bytes.Contains(a, []byte(`"now"`)) {
		t.Errorf("bills of two runs are\n%s\n%s (%v, %v)", a, b, errA, errB)
	}
	if !bytes.Contains(a, []byte(`"hashes"`)) {
		t.Errorf("the checksums of components are gone: %s", a)
	}
	if _, err := settle([]byte(`{"metadata":[]}`), "now"); err == nil {
		t.Error("a bill without metadata was taken: want an error")
	}
}

func TestModulesWithoutALicenceAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "license.go"), "package license")
	if err := licences(&bytes.Buffer{}, "m", dir); err == nil {
		t.Error("a module without a licence was taken: want an error")
	}
	for _, name := range []string{"LICENSE", "COPYING.txt", "LICENSE-APACHE", "License.md", "NOTICE"} {
		if !isLicence(name) {
			t.Errorf("%s was not taken for a licence", name)
		}
	}
}

func TestClearLeavesWhatOthersPutThere(t *testing.T) {
	r := example(t, "1.2.3")
	write(t, filepath.Join(r.out, "kvca_1.0.0_linux_amd64.tar.gz"), "old")
	write(t, filepath.Join(r.out, "mine"), "new")
	if err := r.clear(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(r.out, "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "mine" {
		t.Errorf("left are %q (%v): want mine", left, err)
	}
}
