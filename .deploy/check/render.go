package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// noComponents is the line of kustomization.yaml that an operator changes to
// switch components on.
const noComponents = "components: []"

// Kustomize renders the manifests below dir, with components switched on in the
// way that an operator would.
func Kustomize(dir string, components ...string) ([]byte, error) {
	files := filesys.MakeFsInMemory()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if name == "kustomization.yaml" {
			if text, err = with(text, components); err != nil {
				return err
			}
		}
		return files.WriteFile("/"+filepath.ToSlash(name), text)
	})
	if err != nil {
		return nil, err
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/")
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", dir, err)
	}
	return made.AsYaml()
}

func with(text []byte, components []string) ([]byte, error) {
	if strings.Count(string(text), noComponents) != 1 {
		return nil, fmt.Errorf("kustomization.yaml: want the line %q once", noComponents)
	}
	return []byte(strings.Replace(string(text), noComponents, "components: ["+strings.Join(components, ", ")+"]", 1)), nil
}

// Chart renders a chart as Helm would at its installation as the release kvca in
// the namespace kvca. Values are held against the chart's schema. The notes are
// returned apart.
func Chart(dir string, values map[string]any) (manifests []byte, notes string, err error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, "", fmt.Errorf("load chart: %w", err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{
		Name: "kvca", Namespace: "kvca", Revision: 1, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, "", fmt.Errorf("take values: %w", err)
	}
	made, err := engine.Render(chart, all)
	if err != nil {
		return nil, "", fmt.Errorf("render chart: %w", err)
	}
	var names []string
	for name := range made {
		names = append(names, name)
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = made[name]
		case strings.HasSuffix(name, ".yaml"):
			fmt.Fprintf(&text, "---\n%s\n", made[name])
		}
	}
	return []byte(text.String()), notes, nil
}
