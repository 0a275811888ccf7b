package check

import (
	"os"
	"path/filepath"
	"testing"

	core "k8s.io/api/core/v1"
)

// Where things lie, from this folder.
const (
	manifests = "../kubernetes"
	chartDir  = "../helm/kvca"
	flagTable = "../../cmd/kvca/testdata/flags.md"
	readme    = "../../README.md"
	recipe    = "../Containerfile"
)

var components = []string{"autoscaling", "monitoring", "tls", "admin-token"}

// outside is what operators make beside the manifests: the example's secrets, and
// two that only the chart can be told of.
func outside(t *testing.T) Outside {
	t.Helper()
	o := Outside{Secrets: map[string][]string{"admin": {"admin.token"}, "registry": {".dockerconfigjson"}}}
	for _, s := range All[*core.Secret](exampleSecrets(t)) {
		for key := range s.StringData {
			o.Secrets[s.Name] = append(o.Secrets[s.Name], key)
		}
	}
	o.Secrets["kvca-tls"] = append(o.Secrets["kvca-tls"], "ca.crt") // cert-manager adds it
	metrics, err := Metrics(readme)
	if err != nil {
		t.Fatal(err)
	}
	o.Metrics = metrics
	return o
}

func exampleSecrets(t *testing.T) *Set {
	t.Helper()
	return decode(t, read(t, filepath.Join(manifests, "secrets.example.yaml")))
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func decode(t *testing.T, text []byte) *Set {
	t.Helper()
	set, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func kustomized(t *testing.T, components ...string) *Set {
	t.Helper()
	text, err := Kustomize(manifests, components...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

func charted(t *testing.T, values map[string]any) *Set {
	t.Helper()
	text, _, err := Chart(chartDir, values)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// faults is everything that is wrong with a set, but for its flags.
func faults(t *testing.T, s *Set) []string {
	t.Helper()
	all := s.Faults(outside(t))
	for _, further := range []func() ([]string, error){
		s.Fit,
		func() ([]string, error) { return s.Files(outside(t)) },
		func() ([]string, error) { return s.Overruled(recipe) },
	} {
		more, err := further()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	return all
}

// holds checks everything that a set can be held against.
func holds(t *testing.T, s *Set) {
	t.Helper()
	for _, fault := range faults(t, s) {
		t.Error(fault)
	}
	used, err := s.Used()
	if err != nil {
		t.Fatal(err)
	}
	flagsExist(t, used)
}

func flagsExist(t *testing.T, used []string) {
	t.Helper()
	known, err := Flags(flagTable)
	if err != nil {
		t.Fatal(err)
	}
	if len(used) == 0 {
		t.Error("no flags found: want some")
	}
	for _, flag := range Unknown(used, known) {
		t.Errorf("kvca has no flag %s", flag)
	}
}

func TestManifestsHoldTogether(t *testing.T) {
	for _, on := range [][]string{nil, {"autoscaling"}, {"monitoring"}, {"tls"}, {"admin-token"}, components} {
		holds(t, kustomized(t, on...))
	}
}
