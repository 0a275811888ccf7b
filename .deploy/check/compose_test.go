package check

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func composed(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../compose/compose.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestComposeUsesFlagsThatExist(t *testing.T) {
	var used []string
	for _, s := range composed(t).Services {
		used = append(used, OfArguments(s.Command)...)
	}
	flagsExist(t, used)
}

// In one network each address is taken once, each peer that is named is there, and
// what is published is listened on.
func TestComposeNodesFindEachOther(t *testing.T) {
	project := composed(t)
	given := func(flag string) (all []string) {
		for _, s := range project.Services {
			for _, a := range s.Command {
				if value, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
					all = append(all, value)
				}
			}
		}
		return all
	}
	var taken []string
	for _, flag := range []string{"listen", "admin", "gossip", "link", "node-name"} {
		taken = append(taken, given(flag)...)
	}
	if slices.Sort(taken); len(slices.Compact(slices.Clone(taken))) != 5*3 {
		t.Errorf("addresses and names are %q: want fifteen different ones", taken)
	}
	for _, peer := range given("join") {
		if !slices.Contains(given("gossip"), peer) {
			t.Errorf("nobody gossips at %s", peer)
		}
	}
	for _, s := range project.Services {
		for _, p := range s.Ports {
			if !slices.Contains(taken, ":"+p.Published) {
				t.Errorf("port %s is published and nobody listens there", p.Published)
			}
		}
	}
	recipe := project.Services["kvca-1"].Build
	read(t, filepath.Join(recipe.Context, recipe.Dockerfile))
}
