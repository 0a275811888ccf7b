package check

import (
	"fmt"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// What README says of sizing, beside what settings bound: the program itself, and
// tokens that are remembered.
const (
	programBytes = 25 << 20
	tokensBytes  = 64 << 20
)

// afterDrain is what a node takes at most once its requests have ended or were cut.
const afterDrain = 10 * time.Second

// sizing is what of the settings has to fit the pod.
type sizing struct {
	MaxIndexBytes   string `json:"max_index_bytes"`
	MaxKVIndexBytes string `json:"max_kv_index_bytes"`
	BodyBudget      string `json:"body_budget"`
	DrainDelay      string `json:"drain_delay"`
	DrainTimeout    string `json:"drain_timeout"`
}

// Fit checks the pods' memory and time to end against their settings.
func (s *Set) Fit() (faults []string, err error) {
	for _, w := range All[*apps.StatefulSet](s) {
		for _, m := range All[*core.ConfigMap](s) {
			var settings sizing
			if err := yaml.Unmarshal([]byte(m.Data["kvca.yaml"]), &settings); err != nil {
				return nil, err
			}
			more, err := fit(w, settings)
			if err != nil {
				return nil, fmt.Errorf("StatefulSet %s: %w", w.Name, err)
			}
			faults = append(faults, more...)
		}
	}
	return faults, nil
}

func fit(w *apps.StatefulSet, s sizing) (faults []string, err error) {
	needed := int64(programBytes + tokensBytes)
	for _, text := range []string{s.MaxIndexBytes, s.MaxKVIndexBytes, s.BodyBudget} {
		n, err := bytes(text)
		if err != nil {
			return nil, err
		}
		needed += n
	}
	pod := &w.Spec.Template.Spec
	limit := pod.Containers[0].Resources.Limits.Memory().Value()
	for _, e := range pod.Containers[0].Env {
		if e.Name != "GOMEMLIMIT" {
			continue
		}
		goal, err := bytes(e.Value)
		if err != nil {
			return nil, err
		}
		if goal != limit/10*9 {
			faults = append(faults, fmt.Sprintf("GOMEMLIMIT is %d: want nine tenths of the limit, %d", goal, limit/10*9))
		}
	}
	if goal := limit / 10 * 9; needed > goal {
		faults = append(faults, fmt.Sprintf("the settings' bounds need %d bytes, nine tenths of the limit are %d", needed, goal))
	}
	var drain time.Duration
	for _, text := range []string{s.DrainDelay, s.DrainTimeout} {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		drain += d
	}
	if grace := pod.TerminationGracePeriodSeconds; grace == nil || time.Duration(*grace)*time.Second < drain+afterDrain {
		faults = append(faults, fmt.Sprintf("draining takes up to %v: want a longer terminationGracePeriodSeconds", drain+afterDrain))
	}
	return faults, nil
}

// bytes reads a size such as 96MiB.
func bytes(text string) (int64, error) {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", text, err)
	}
	return q.Value(), nil
}
