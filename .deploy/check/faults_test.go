package check

import (
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// the is the set's only object of a type, or the first.
func the[T Object](s *Set) T { return All[T](s)[0] }

func pod(s *Set) *core.PodSpec { return &the[*apps.StatefulSet](s).Spec.Template.Spec }

func volume(s *Set, name string) *core.Volume {
	all := pod(s).Volumes
	return &all[slices.IndexFunc(all, func(v core.Volume) bool { return v.Name == name })]
}

func mount(s *Set, name string) *core.VolumeMount {
	all := pod(s).Containers[0].VolumeMounts
	return &all[slices.IndexFunc(all, func(m core.VolumeMount) bool { return m.Name == name })]
}

// Each change is a mistake that is easily made; the text is part of what has to be
// said of it.
func TestFaultsAreFound(t *testing.T) {
	cases := []struct {
		want   string
		change func(*Set)
	}{
		{"Service kvca: selector", func(s *Set) { the[*core.Service](s).Spec.Selector["app.kubernetes.io/name"] = "kv" }},
		{"which kvca lacks", func(s *Set) { pod(s).Containers[0].Ports[0].Name = "http" }},
		{"none of kvca", func(s *Set) { pod(s).Containers[0].Ports[2].ContainerPort = 7 }},
		{"readiness probe", func(s *Set) { pod(s).Containers[0].ReadinessProbe.HTTPGet.Path = "/healthz" }},
		{"liveness probe", func(s *Set) { pod(s).Containers[0].LivenessProbe = nil }},
		{"startup probe", func(s *Set) { pod(s).Containers[0].StartupProbe.HTTPGet.Port.StrVal = "metrics" }},
		{"headless", func(s *Set) { the[*apps.StatefulSet](s).Spec.ServiceName = "kvca" }},
		{"no ServiceAccount", func(s *Set) { pod(s).ServiceAccountName = "default" }},
		{"enableServiceLinks", func(s *Set) { pod(s).EnableServiceLinks = nil }},
		{"not root", func(s *Set) { *pod(s).SecurityContext.RunAsUser = 0 }},
		{"can't write", func(s *Set) { pod(s).Containers[0].SecurityContext.ReadOnlyRootFilesystem = nil }},
		{"without capabilities", func(s *Set) { pod(s).Containers[0].SecurityContext.Capabilities.Drop = nil }},
		{"share nothing", func(s *Set) { pod(s).HostNetwork = true }},
		{"no Secret", func(s *Set) { volume(s, "secrets").Projected.Sources[0].Secret.Name = "kvca" }},
		{"no ConfigMap", func(s *Set) { volume(s, "config").ConfigMap.Name = "settings" }},
		{"no volume", func(s *Set) { mount(s, "config").Name = "settings" }},
		{"there twice", func(s *Set) { c := &pod(s).Containers[0]; c.Env = append(c.Env, c.Env[0]) }},
		{"limit on memory", func(s *Set) { delete(pod(s).Containers[0].Resources.Limits, core.ResourceMemory) }},
		{"opens all", func(s *Set) { the[*networking.NetworkPolicy](s).Spec.Ingress[1].Ports = nil }},
		{"NetworkPolicy kvca: selector", func(s *Set) { the[*networking.NetworkPolicy](s).Spec.PodSelector.MatchLabels = nil }},
		{"set back", func(s *Set) { the[*apps.StatefulSet](s).Spec.Replicas = new(int32) }},
		{"there is no Deployment", func(s *Set) { the[*autoscaling.HorizontalPodAutoscaler](s).Spec.ScaleTargetRef.Kind = "Deployment" }},
		{"want a metric", func(s *Set) {
			the[*autoscaling.HorizontalPodAutoscaler](s).Spec.Metrics[0].Pods.Metric.Name = "requests"
		}},
		{"there is no Role", func(s *Set) { the[*rbac.RoleBinding](s).RoleRef.Name = "view" }},
		{"there is no ServiceAccount kvca in default", func(s *Set) { the[*rbac.RoleBinding](s).Subjects[0].Namespace = "default" }},
		{"has no port metrics", func(s *Set) { the[*monitoring.ServiceMonitor](s).Spec.Endpoints[0].Port = "metrics" }},
		{"selects 3 services", func(s *Set) {
			delete(the[*monitoring.ServiceMonitor](s).Spec.Selector.MatchLabels, "app.kubernetes.io/component")
		}},
		{"terminationGracePeriodSeconds", func(s *Set) { *pod(s).TerminationGracePeriodSeconds = 60 }},
		{"GOMEMLIMIT", func(s *Set) { pod(s).Containers[0].Resources.Limits[core.ResourceMemory] = resource.MustParse("2Gi") }},
		{"bounds need", func(s *Set) { pod(s).Containers[0].Resources.Limits[core.ResourceMemory] = resource.MustParse("1Gi") }},
		{"named and not mounted", func(s *Set) { mount(s, "secrets").MountPath = "/run/secrets" }},
		{"listen does nothing", func(s *Set) { the[*core.ConfigMap](s).Data["kvca.yaml"] += "listen: ':1'\n" }},
		{"named and not mounted", func(s *Set) { pod(s).Containers[0].Args[2] = "/etc/kvca/kvca.yaml" }},
	}
	for _, c := range cases {
		s := kustomized(t, components...)
		c.change(s)
		found := faults(t, s)
		if !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("want a fault with %q, found %q", c.want, found)
		}
	}
}

func TestUnknownFieldsAndKindsAreErrors(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {port: 1}",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a, name: b}",
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: 1}",
		"apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}",
		"kind: Service",
	} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("%q was taken: want an error", text)
		}
	}
}

func TestUnknownFlagsAreFound(t *testing.T) {
	known, err := Flags(flagTable)
	if err != nil {
		t.Fatal(err)
	}
	s := kustomized(t)
	pod(s).Containers[0].Args = append(pod(s).Containers[0].Args, "--polcy=cost")
	pod(s).Containers[0].Env = append(pod(s).Containers[0].Env, core.EnvVar{Name: "KVCA_JION", Value: "a:1"})
	the[*core.ConfigMap](s).Data["kvca.yaml"] += "lisen: ':1'\n"
	used, err := s.Used()
	if err != nil {
		t.Fatal(err)
	}
	if got := Unknown(used, known); !slices.Equal(got, []string{"--polcy", "--jion", "--lisen"}) {
		t.Errorf("unknown flags are %q", got)
	}
}
