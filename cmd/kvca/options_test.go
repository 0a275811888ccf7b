package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"kvca/proxy"
	"kvca/router"
)

var update = flag.Bool("update", false, "rewrite the files of testdata that outputs are compared with")

// golden compares a text with a file of testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./cmd/kvca -update rewrites it); got:\n%s", file, got)
	}
}

// flagTable is the table of all flags for the documentation, in Markdown.
func flagTable(table []*option) string {
	var b strings.Builder
	b.WriteString("| flag | default | what it does |\n|---|---|---|\n")
	for _, o := range table {
		def := o.defaultText()
		switch {
		case o.repeats:
			def = "none; repeatable"
		case o.shown == "":
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimSpace("--"+o.name+" "+o.value), def, o.usage)
	}
	return b.String()
}

// The table of flags in the documentation is a copy of this file.
func TestTableOfFlags(t *testing.T) { golden(t, "testdata/flags.md", flagTable(options())) }

func TestOptionsAreWellFormed(t *testing.T) {
	seen := make(map[string]bool)
	for _, o := range options() {
		if seen[o.name] || o.set == nil || o.usage == "" || strings.HasSuffix(o.usage, ".") {
			t.Errorf("option %s is there twice or incomplete", o.name)
		}
		if o.repeats && (o.def != "" || o.isSwitch()) {
			t.Errorf("option %s repeats, and has a default or no value", o.name)
		}
		seen[o.name] = true
	}
}

// What the table calls a default is what the parts call one: whoever builds a
// node without the command line gets the same.
func TestDefaultsAreThoseOfTheParts(t *testing.T) {
	s, err := defaultSettings()
	if err != nil {
		t.Fatal(err)
	}
	r, p := router.DefaultConfig(), proxy.DefaultConfig()
	for what, pair := range map[string][2]any{
		"block size":     {s.router.BlockSize, r.BlockSize},
		"policy":         {s.router.Policy, r.Policy},
		"cluster":        {s.proxy.Cluster, p.Cluster},
		"key":            {s.proxy.Key, p.Key},
		"max body bytes": {s.proxy.MaxBodyBytes, p.MaxBodyBytes},
		"body budget":    {s.proxy.BodyBudget, p.BodyBudget},
		"upload idle":    {s.proxy.UploadIdle, p.UploadIdle},
		"upload limit":   {s.proxy.UploadLimit, p.UploadLimit},
		"write idle":     {s.proxy.WriteIdle, p.WriteIdle},
		"debug headers":  {s.proxy.DebugHeaders, p.DebugHeaders},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: the table says %v, the part %v", what, pair[0], pair[1])
		}
	}
}
