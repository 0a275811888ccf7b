package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// values reads a chart's values as an operator writes them.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// everything switches on what the components do.
const everything = `
autoscaling: {enabled: true}
monitoring: {enabled: true}
tls: {secret: kvca-tls}
secrets: {adminToken: kvca-admin}
`

func TestChartHoldsTogether(t *testing.T) {
	cases := map[string]string{
		"defaults":   "",
		"everything": everything,
		"no discovery": `
discovery: {services: []}
backends: [gpu-1=http://10.0.0.11:8000, {id: gpu-2, url: "http://10.0.0.12:8000", weight: 2}]
`,
		"engines elsewhere": `
discovery: {services: [{namespace: a, service: vllm, port: 8000}, {namespace: a, service: sglang}, {service: tgi, port: http}]}
networkPolicy: {enginesTo: [], apiServerTo: [{ipBlock: {cidr: 10.0.0.1/32}}], agentsFrom: [{namespaceSelector: {}}]}
`,
		"secured": `
secrets: {adminToken: admin}
tls: {secret: kvca-tls, clientCA: true, admin: true}
monitoring: {enabled: true, labels: {release: prometheus}}
`,
		"open to all": `
secrets: {keys: ""}
networkPolicy: {enabled: false}
`,
		"other names and ports": `
fullnameOverride: gateway
nameOverride: kvca
ports: {client: 1080, admin: 1081, gossip: 1082, link: 1083}
service: {port: 80, type: LoadBalancer, annotations: {a: b}}
`,
		"more of everything": `
extraArgs: [--policy, two-phase, --debug-headers]
extraEnv: [{name: KVCA_TTL, value: 5m}]
extraVolumes: [{name: tokenizers, emptyDir: {}}]
extraVolumeMounts: [{name: tokenizers, mountPath: /tokenizers}]
image: {repository: kvca, tag: "1", pullPolicy: Always, pullSecrets: [registry]}
podAnnotations: {a: b}
podLabels: {c: d}
nodeSelector: {e: f}
tolerations: [{key: g, operator: Exists}]
affinity: {nodeAffinity: {}}
priorityClassName: high
goMemLimit: ""
config: {max_index_bytes: 128MiB, policy: two-phase}
serviceAccount: {annotations: {h: i}}
`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) { holds(t, charted(t, values(t, text))) })
	}
}

func TestChartSettingsTakeThePlaceOfItsOwn(t *testing.T) {
	set := charted(t, values(t, "config: {discover: ['dns://vllm:8000'], policy: p2c}"))
	settings := values(t, settingsOf(t, set))
	if fmt.Sprint(settings["discover"]) != "[dns://vllm:8000]" || settings["policy"] != "p2c" || settings["drain_delay"] != "5s" {
		t.Errorf("settings are %v: want those given, and the others as they were", settings)
	}
}

func settingsOf(t *testing.T, s *Set) string {
	t.Helper()
	all := All[*core.ConfigMap](s)
	if len(all) != 1 {
		t.Fatalf("%d ConfigMaps: want one", len(all))
	}
	return all[0].Data["kvca.yaml"]
}

func TestChartRefusesWrongValues(t *testing.T) {
	for _, text := range []string{
		"replica: 3",
		"replicas: 65",
		"secrets: {cluster: ''}",
		"ports: {client: 0}",
		"discovery: {services: [{port: 8000}]}",
		"backends: [{id: gpu-1}]",
		"networkPolicy: {enabled: 'yes'}",
		"tls: {secret: Upper}",
	} {
		if _, _, err := Chart(chartDir, values(t, text)); err == nil {
			t.Errorf("values %q were taken: want an error", text)
		}
	}
}

// What the notes say to run in a pod needs what the pod has.
func TestStatusInAPodIsLetIn(t *testing.T) {
	open := map[string]any{}
	secured := values(t, "secrets: {adminToken: admin}\ntls: {secret: kvca-tls, admin: true}")
	for name, c := range map[string]struct {
		set     *Set
		want    []string
		mustNot []string
	}{
		"chart":              {charted(t, secured), []string{"KVCA_TOKEN_FILE", "KVCA_CA_FILE"}, nil},
		"chart, open":        {charted(t, open), nil, []string{"KVCA_TOKEN_FILE", "KVCA_CA_FILE"}},
		"manifests":          {kustomized(t, "admin-token"), []string{"KVCA_TOKEN_FILE", "KVCA_ADMIN_TOKEN_FILE"}, nil},
		"manifests, without": {kustomized(t), nil, []string{"KVCA_TOKEN_FILE", "KVCA_ADMIN_TOKEN_FILE"}},
	} {
		env := All[*apps.StatefulSet](c.set)[0].Spec.Template.Spec.Containers[0].Env
		has := func(variable string) bool {
			return slices.ContainsFunc(env, func(e core.EnvVar) bool { return e.Name == variable })
		}
		for _, v := range c.want {
			if !has(v) {
				t.Errorf("%s: no %s", name, v)
			}
		}
		for _, v := range c.mustNot {
			if has(v) {
				t.Errorf("%s: %s without need", name, v)
			}
		}
	}
	_, notes, err := Chart(chartDir, secured)
	if err != nil {
		t.Fatal(err)
	}
	aliases := All[*apps.StatefulSet](charted(t, secured))[0].Spec.Template.Spec.HostAliases
	if len(aliases) != 1 || !strings.Contains(notes, "/kvca status --admin https://"+aliases[0].Hostnames[0]+":8081") {
		t.Errorf("aliases %v, notes\n%s", aliases, notes)
	}
}

func TestNotesNameTheSecretsThatPodsWaitFor(t *testing.T) {
	_, notes, err := Chart(chartDir, values(t, "secrets: {adminToken: admin}\ntls: {secret: kvca-tls}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kvca-cluster", "kvca-keys", "admin", "kvca-tls"} {
		if !regexp.MustCompile("create secret (generic|tls) " + name + " ").MatchString(notes) {
			t.Errorf("the notes have no command for the secret %s:\n%s", name, notes)
		}
	}
	_, notes, err = Chart(chartDir, values(t, "secrets: {keys: ''}\ndiscovery: {services: []}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range []string{"whoever reaches the service", "There are no engines"} {
		if !strings.Contains(notes, warning) {
			t.Errorf("the notes lack %q:\n%s", warning, notes)
		}
	}
}

func TestChartAndManifestsAreTheSame(t *testing.T) {
	for name, pair := range map[string][2]*Set{
		"defaults":   {kustomized(t), charted(t, nil)},
		"everything": {kustomized(t, components...), charted(t, values(t, everything))},
	} {
		t.Run(name, func(t *testing.T) {
			plain, chart := plainly(t, pair[0]), plainly(t, pair[1])
			delete(plain, "Namespace kvca") // helm install --create-namespace
			if a, b := slices.Sorted(maps.Keys(plain)), slices.Sorted(maps.Keys(chart)); !slices.Equal(a, b) {
				t.Fatalf("manifests have %v\nthe chart has %v", a, b)
			}
			for name, text := range plain {
				if text != chart[name] {
					t.Errorf("%s differs:\n%s", name, firstDifference(text, chart[name]))
				}
			}
		})
	}
}

// plainly writes each object without what only the one way of making it adds.
func plainly(t *testing.T, s *Set) map[string]string {
	t.Helper()
	hashed := regexp.MustCompile(`\bkvca-[a-z0-9]{10}\b`) // a generated ConfigMap's name
	written := make(map[string]string)
	for _, o := range s.Objects {
		labels := o.GetLabels()
		for _, own := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version"} {
			delete(labels, own)
		}
		if m, ok := o.(*core.ConfigMap); ok {
			m.Labels, m.Data["kvca.yaml"] = nil, settled(t, m.Data["kvca.yaml"])
		}
		if w, ok := o.(*apps.StatefulSet); ok {
			inOneOrder(&w.Spec.Template.Spec)
		}
		text, err := json.MarshalIndent(o, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		text = hashed.ReplaceAllLiteral(text, []byte("kvca"))
		text = regexp.MustCompile(`(?s),\s*"annotations": \{\s*"kvca/config": "[0-9a-f]{64}"\s*\}`).ReplaceAll(text, nil)
		kind := o.GetObjectKind().GroupVersionKind().Kind
		written[kind+" "+hashed.ReplaceAllLiteralString(o.GetName(), "kvca")] = string(text)
	}
	return written
}

// inOneOrder sorts what kustomize puts first and the chart last.
func inOneOrder(pod *core.PodSpec) {
	c := &pod.Containers[0]
	slices.SortFunc(pod.Volumes, func(a, b core.Volume) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.VolumeMounts, func(a, b core.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Env, func(a, b core.EnvVar) int { return strings.Compare(a.Name, b.Name) })
}

// settled writes settings in one order, without comments.
func settled(t *testing.T, text string) string {
	t.Helper()
	out, err := yaml.Marshal(values(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// firstDifference shows two texts from where they part.
func firstDifference(a, b string) string {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	from := max(0, i-200)
	return "manifests: ..." + a[from:min(len(a), i+200)] + "\nchart: ..." + b[from:min(len(b), i+200)]
}
