package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// mounted is where a pod's files of settings and secrets are.
const mounted = "/etc/kvca/"

// Files checks that each file which the pods' settings name is mounted there.
func (s *Set) Files(outside Outside) (faults []string, err error) {
	for _, w := range All[*apps.StatefulSet](s) {
		pod := &w.Spec.Template.Spec
		for i := range pod.Containers {
			named, err := s.named(&pod.Containers[i])
			if err != nil {
				return nil, err
			}
			there := s.files(pod, &pod.Containers[i], outside)
			for _, name := range named {
				if !slices.Contains(there, name) {
					faults = append(faults, fmt.Sprintf("StatefulSet %s: %s is named and not mounted: want one of %v", w.Name, name, there))
				}
			}
		}
	}
	return faults, nil
}

// files are the files that a container sees of the volumes that we know.
func (s *Set) files(pod *core.PodSpec, container *core.Container, outside Outside) []string {
	var files []string
	for _, m := range container.VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if at < 0 {
			continue
		}
		for _, key := range s.keys(&pod.Volumes[at], outside) {
			files = append(files, m.MountPath+"/"+key)
		}
	}
	return files
}

// keys are the names of the files in a volume.
func (s *Set) keys(v *core.Volume, outside Outside) (keys []string) {
	ofMap := func(name string) []string {
		m, _ := Named[*core.ConfigMap](s, name)
		if m == nil {
			return nil
		}
		return slices.Sorted(maps.Keys(m.Data))
	}
	switch {
	case v.ConfigMap != nil:
		return ofMap(v.ConfigMap.Name)
	case v.Secret != nil:
		return outside.Secrets[v.Secret.SecretName]
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				keys = append(keys, ofMap(source.ConfigMap.Name)...)
			}
			if source.Secret != nil {
				keys = append(keys, outside.Secrets[source.Secret.Name]...)
			}
		}
	}
	return keys
}

// named are the files that a container's arguments, variables and settings name.
func (s *Set) named(container *core.Container) ([]string, error) {
	var named []string
	note := func(v any) {
		if text, ok := v.(string); ok && strings.HasPrefix(text, mounted) {
			named = append(named, text)
		}
	}
	for _, a := range container.Args {
		_, value, _ := strings.Cut(a, "=")
		note(a)
		note(value)
	}
	for _, e := range container.Env {
		note(e.Value)
	}
	for _, m := range All[*core.ConfigMap](s) {
		var settings map[string]any
		if err := yaml.UnmarshalStrict([]byte(m.Data["kvca.yaml"]), &settings); err != nil {
			return nil, fmt.Errorf("ConfigMap %s: kvca.yaml: %w", m.Name, err)
		}
		for _, v := range settings {
			note(v)
		}
	}
	return named, nil
}
