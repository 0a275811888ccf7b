package check

import (
	"slices"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// workload checks what a StatefulSet and its pods refer to.
func (c *checker) workload(w *apps.StatefulSet) {
	who, pod := "StatefulSet "+w.Name, &w.Spec.Template.Spec
	if found := c.selects(who, w.Spec.Selector); !slices.Contains(found, w) {
		c.fault("%s: its selector does not select its own pods", who)
	}
	if s, ok := Named[*core.Service](c.Set, w.Spec.ServiceName); !ok || s.Spec.ClusterIP != core.ClusterIPNone || !s.Spec.PublishNotReadyAddresses {
		c.fault("%s: want %s as a headless service that publishes pods before they are ready", who, w.Spec.ServiceName)
	}
	if _, ok := Named[*core.ServiceAccount](c.Set, pod.ServiceAccountName); !ok {
		c.fault("%s: there is no ServiceAccount %s", who, pod.ServiceAccountName)
	}
	if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
		c.fault("%s: want enableServiceLinks: false, or services' variables are taken for settings", who)
	}
	for _, spread := range pod.TopologySpreadConstraints {
		c.selects(who, spread.LabelSelector)
	}
	c.restricted(who, pod)
	c.volumes(who, pod)
	for i := range pod.Containers {
		c.container(who, w, &pod.Containers[i])
	}
}

// volumes checks that what volumes are made of is there.
func (c *checker) volumes(who string, pod *core.PodSpec) {
	for _, v := range pod.Volumes {
		if v.ConfigMap != nil {
			c.hasConfigMap(who, v.ConfigMap.Name)
		}
		if v.Secret != nil {
			c.hasSecret(who, v.Secret.SecretName)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				c.hasConfigMap(who, source.ConfigMap.Name)
			}
			if source.Secret != nil {
				c.hasSecret(who, source.Secret.Name)
			}
		}
	}
}

func (c *checker) hasConfigMap(who, name string) {
	if _, ok := Named[*core.ConfigMap](c.Set, name); !ok {
		c.fault("%s: there is no ConfigMap %s", who, name)
	}
}

func (c *checker) hasSecret(who, name string) {
	if _, ok := c.outside.Secrets[name]; !ok {
		c.fault("%s: there is no Secret %s", who, name)
	}
}

// container checks what one container refers to.
func (c *checker) container(who string, w *apps.StatefulSet, container *core.Container) {
	for _, m := range container.VolumeMounts {
		if !slices.ContainsFunc(w.Spec.Template.Spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
			c.fault("%s: there is no volume %s", who, m.Name)
		}
	}
	seen := make(map[string]bool)
	for _, e := range container.Env {
		if seen[e.Name] {
			c.fault("%s: variable %s is there twice", who, e.Name)
		}
		seen[e.Name] = true
	}
	probes := map[string]*core.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe}
	for name, probe := range probes {
		want := map[bool]string{true: "/readyz", false: "/healthz"}[name == "readiness"]
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != want || !hasPort(w, probe.HTTPGet.Port, "") {
			c.fault("%s: want a %s probe of %s at a port of the container", who, name, want)
		}
	}
	if container.Resources.Limits.Memory().IsZero() || container.Resources.Requests.Memory().IsZero() || container.Resources.Requests.Cpu().IsZero() {
		c.fault("%s: want requests of CPU and memory, and a limit on memory", who)
	}
}

// restricted checks what a namespace that enforces the restricted Pod Security
// Standard asks of a pod, and that it writes nowhere.
func (c *checker) restricted(who string, pod *core.PodSpec) {
	s := pod.SecurityContext
	if s == nil || !isTrue(s.RunAsNonRoot) || s.RunAsUser == nil || *s.RunAsUser == 0 ||
		s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		c.fault("%s: want pods that are not root, with the runtime's seccomp profile", who)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		c.fault("%s: want pods that share nothing with the host", who)
	}
	for _, container := range pod.Containers {
		s := container.SecurityContext
		if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !isTrue(s.ReadOnlyRootFilesystem) ||
			s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
			c.fault("%s: want container %s without capabilities, and with a root that it can't write", who, container.Name)
		}
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
