package check

import (
	"flag"
	"os"
	"reflect"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the copies of the alerting rules anew")

// Where the rules are, and the copies of them: kustomize and Helm take no file from
// outside their folders.
const (
	rules        = "../prometheus/alerts.yaml"
	rulesOfPlain = manifests + "/monitoring/prometheusrule.yaml"
	rulesOfChart = chartDir + "/files/alerts.yaml"
)

const ruleHeader = `# Made of .deploy/prometheus/alerts.yaml by make deploy-update.
`

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCopiesOfTheRulesAreCurrent(t *testing.T) {
	source, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := yaml.UnmarshalStrict(source, &spec); err != nil {
		t.Fatal(err)
	}
	if *update {
		writeRules(t, spec)
	}
	plain, ok := Named[*monitoring.PrometheusRule](decode(t, read(t, rulesOfPlain)), "kvca")
	if !ok {
		t.Fatalf("%s has no rule kvca", rulesOfPlain)
	}
	var want monitoring.PrometheusRuleSpec
	if err := yaml.UnmarshalStrict(source, &want); err != nil {
		t.Fatalf("%s does not fit a PrometheusRule: %v", rules, err)
	}
	if !reflect.DeepEqual(plain.Spec, want) {
		t.Errorf("%s differs from %s: make deploy-update", rulesOfPlain, rules)
	}
	var copied map[string]any
	if err := yaml.UnmarshalStrict(read(t, rulesOfChart), &copied); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(copied, spec) {
		t.Errorf("%s differs from %s: make deploy-update", rulesOfChart, rules)
	}
}

func writeRules(t *testing.T, spec map[string]any) {
	t.Helper()
	rule := map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "spec": spec,
		"metadata": map[string]any{
			"name":   "kvca",
			"labels": map[string]string{"app.kubernetes.io/name": "kvca", "app.kubernetes.io/instance": "kvca"},
		},
	}
	for name, v := range map[string]any{rulesOfPlain: rule, rulesOfChart: spec} {
		if err := os.WriteFile(name, append([]byte(ruleHeader), marshal(t, v)...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
