package check

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// otherFlags are flags of kvca that are no settings; the last two are those of
// kvca status.
var otherFlags = []string{"--config", "--token-file", "--ca-file"}

var flagRow = regexp.MustCompile("(?m)^\\| `(--[a-z0-9-]+)[^`]*` \\|")

// Flags reads the table of flags, as `| `--name VALUE` | default | what it does |`.
func Flags(table string) ([]string, error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	var flags []string
	for _, row := range flagRow.FindAllStringSubmatch(string(text), -1) {
		flags = append(flags, row[1])
	}
	if len(flags) < 40 {
		return nil, fmt.Errorf("%s has %d flags: want the whole table", table, len(flags))
	}
	return flags, nil
}

var metricRow = regexp.MustCompile("(?m)^\\| `(kvca_[a-z0-9_]+)` \\|")

// Metrics reads the README's table of metrics.
func Metrics(readme string) ([]string, error) {
	text, err := os.ReadFile(readme)
	if err != nil {
		return nil, err
	}
	var metrics []string
	for _, row := range metricRow.FindAllStringSubmatch(string(text), -1) {
		metrics = append(metrics, row[1])
	}
	return metrics, nil
}

// OfKey is the flag that a key of a file stands for.
func OfKey(key string) string { return "--" + strings.ReplaceAll(key, "_", "-") }

// OfVariable is the flag that a variable stands for, empty for one that is not
// about kvca's settings.
func OfVariable(name string) string {
	rest, ok := strings.CutPrefix(name, "KVCA_")
	if !ok {
		return ""
	}
	return OfKey(strings.ToLower(rest))
}

// Keys are the keys of a file of settings.
func Keys(text []byte) ([]string, error) {
	var file map[string]any
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, err
	}
	var keys []string
	for key := range file {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// OfArguments are the flags among a program's arguments.
func OfArguments(args []string) []string {
	var flags []string
	for _, a := range args {
		if name, _, _ := strings.Cut(a, "="); strings.HasPrefix(name, "--") && len(name) > 2 {
			flags = append(flags, name)
		}
	}
	return flags
}

// Used are the flags that a set's pods are given, in whatever way.
func (s *Set) Used() ([]string, error) {
	var used []string
	for _, w := range All[*apps.StatefulSet](s) {
		for _, c := range w.Spec.Template.Spec.Containers {
			used = append(used, OfArguments(c.Args)...)
			for _, e := range c.Env {
				if flag := OfVariable(e.Name); flag != "" {
					used = append(used, flag)
				}
			}
		}
	}
	for _, m := range All[*core.ConfigMap](s) {
		keys, err := Keys([]byte(m.Data["kvca.yaml"]))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s: kvca.yaml: %w", m.Name, err)
		}
		for _, key := range keys {
			used = append(used, OfKey(key))
		}
	}
	return used, nil
}

// Unknown are those of the used flags that kvca does not have.
func Unknown(used, known []string) []string {
	var unknown []string
	for _, flag := range used {
		if !slices.Contains(known, flag) && !slices.Contains(otherFlags, flag) {
			unknown = append(unknown, flag)
		}
	}
	return unknown
}

var imageVariable = regexp.MustCompile(`KVCA_[A-Z_]+`)

// Overruled are keys of the settings that do nothing, since the pod or the image
// has a variable for them.
func (s *Set) Overruled(recipe string) (faults []string, err error) {
	text, err := os.ReadFile(recipe)
	if err != nil {
		return nil, err
	}
	var variables []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "ENV ") {
			variables = append(variables, imageVariable.FindAllString(line, -1)...)
		}
	}
	for _, w := range All[*apps.StatefulSet](s) {
		for _, e := range w.Spec.Template.Spec.Containers[0].Env {
			variables = append(variables, e.Name)
		}
	}
	for _, m := range All[*core.ConfigMap](s) {
		keys, err := Keys([]byte(m.Data["kvca.yaml"]))
		if err != nil {
			return nil, fmt.Errorf("ConfigMap %s: kvca.yaml: %w", m.Name, err)
		}
		for _, key := range keys {
			if slices.ContainsFunc(variables, func(v string) bool { return OfVariable(v) == OfKey(key) }) {
				faults = append(faults, fmt.Sprintf("ConfigMap %s: %s does nothing, a variable wins over it", m.Name, key))
			}
		}
	}
	return faults, nil
}
