package check

import (
	"fmt"
	"slices"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Outside is what a set may refer to that is not in it.
type Outside struct {
	Secrets map[string][]string // keys by the secret's name
	Metrics []string            // that kvca has
}

// checker gathers what is wrong with a set.
type checker struct {
	*Set
	outside Outside
	faults  []string
}

// Faults are the references of a set that lead nowhere, and what its pods would
// be refused or killed for.
func (s *Set) Faults(outside Outside) []string {
	c := &checker{Set: s, outside: outside}
	for _, w := range All[*apps.StatefulSet](s) {
		c.workload(w)
	}
	for _, service := range All[*core.Service](s) {
		c.service(service)
	}
	for _, b := range All[*policy.PodDisruptionBudget](s) {
		c.selects("PodDisruptionBudget "+b.Name, b.Spec.Selector)
	}
	for _, p := range All[*networking.NetworkPolicy](s) {
		c.policy(p)
	}
	for _, a := range All[*autoscaling.HorizontalPodAutoscaler](s) {
		c.autoscaler(a)
	}
	for _, b := range All[*rbac.RoleBinding](s) {
		c.binding(b)
	}
	for _, m := range All[*monitoring.ServiceMonitor](s) {
		c.monitor(m)
	}
	return c.faults
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// pods are the workloads whose pods a selector selects.
func (c *checker) pods(selector labels.Selector) []*apps.StatefulSet {
	var found []*apps.StatefulSet
	for _, w := range All[*apps.StatefulSet](c.Set) {
		if selector.Matches(labels.Set(w.Spec.Template.Labels)) {
			found = append(found, w)
		}
	}
	return found
}

// selects checks that a selector selects some pods, and returns their workloads.
func (c *checker) selects(who string, selector *meta.LabelSelector) []*apps.StatefulSet {
	s, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		c.fault("%s: %v", who, err)
		return nil
	}
	found := c.pods(s)
	if len(found) == 0 || s.Empty() {
		c.fault("%s: selector %q selects no pods of ours, or all", who, s)
	}
	return found
}

// hasPort is whether a container of the workload has a port, by name or number.
func hasPort(w *apps.StatefulSet, port intstr.IntOrString, protocol core.Protocol) bool {
	if protocol == "" {
		protocol = core.ProtocolTCP
	}
	for _, container := range w.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(container.Ports, func(p core.ContainerPort) bool {
			own := p.Protocol
			if own == "" {
				own = core.ProtocolTCP
			}
			named := port.Type == intstr.String && p.Name == port.StrVal || port.Type == intstr.Int && p.ContainerPort == port.IntVal
			return named && own == protocol
		}) {
			return true
		}
	}
	return false
}

func (c *checker) service(s *core.Service) {
	found := c.selects("Service "+s.Name, &meta.LabelSelector{MatchLabels: s.Spec.Selector})
	for _, p := range s.Spec.Ports {
		for _, w := range found {
			if !hasPort(w, p.TargetPort, p.Protocol) {
				c.fault("Service %s: port %s leads to %s/%s, which %s lacks", s.Name, p.Name, p.TargetPort.String(), p.Protocol, w.Name)
			}
		}
	}
}

func (c *checker) policy(p *networking.NetworkPolicy) {
	who := "NetworkPolicy " + p.Name
	found := c.selects(who, &p.Spec.PodSelector)
	for _, rule := range p.Spec.Ingress {
		c.policyPorts(who, found, rule.Ports)
		for _, peer := range rule.From {
			if peer.PodSelector != nil && peer.NamespaceSelector == nil && ours(peer.PodSelector) {
				c.selects(who, peer.PodSelector)
			}
		}
	}
	for _, rule := range p.Spec.Egress {
		for _, peer := range rule.To {
			if peer.PodSelector != nil && ours(peer.PodSelector) {
				c.policyPorts(who, c.selects(who, peer.PodSelector), rule.Ports)
			}
		}
	}
}

// ours is whether a selector is about pods of kvca.
func ours(s *meta.LabelSelector) bool { return s.MatchLabels["app.kubernetes.io/name"] == "kvca" }

func (c *checker) policyPorts(who string, to []*apps.StatefulSet, ports []networking.NetworkPolicyPort) {
	if len(ports) == 0 {
		c.fault("%s: a rule without ports opens all", who)
	}
	for _, p := range ports {
		protocol := core.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		for _, w := range to {
			if p.Port == nil || !hasPort(w, *p.Port, protocol) {
				c.fault("%s: port %s/%s is none of %s", who, p.Port, protocol, w.Name)
			}
		}
	}
}

func (c *checker) autoscaler(a *autoscaling.HorizontalPodAutoscaler) {
	target := a.Spec.ScaleTargetRef
	w, ok := Named[*apps.StatefulSet](c.Set, target.Name)
	if !ok || target.Kind != "StatefulSet" {
		c.fault("HorizontalPodAutoscaler %s: there is no %s %s", a.Name, target.Kind, target.Name)
	} else if w.Spec.Replicas != nil {
		c.fault("HorizontalPodAutoscaler %s: %s has replicas, which each apply would set back", a.Name, w.Name)
	}
	for _, m := range a.Spec.Metrics {
		if m.Pods == nil || !slices.Contains(c.outside.Metrics, m.Pods.Metric.Name) {
			c.fault("HorizontalPodAutoscaler %s: want a metric of pods that kvca has, found %+v", a.Name, m.Pods)
		}
	}
}

func (c *checker) binding(b *rbac.RoleBinding) {
	role := slices.ContainsFunc(All[*rbac.Role](c.Set), func(r *rbac.Role) bool {
		return r.Name == b.RoleRef.Name && r.Namespace == b.Namespace
	})
	if !role || b.RoleRef.Kind != "Role" {
		c.fault("RoleBinding %s: there is no %s %s in %s", b.Name, b.RoleRef.Kind, b.RoleRef.Name, b.Namespace)
	}
	for _, subject := range b.Subjects {
		account, ok := Named[*core.ServiceAccount](c.Set, subject.Name)
		if !ok || account.Namespace != subject.Namespace {
			c.fault("RoleBinding %s: there is no ServiceAccount %s in %s", b.Name, subject.Name, subject.Namespace)
		}
	}
}

func (c *checker) monitor(m *monitoring.ServiceMonitor) {
	selector, err := meta.LabelSelectorAsSelector(&m.Spec.Selector)
	if err != nil {
		c.fault("ServiceMonitor %s: %v", m.Name, err)
		return
	}
	var found []*core.Service
	for _, s := range All[*core.Service](c.Set) {
		if selector.Matches(labels.Set(s.Labels)) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		c.fault("ServiceMonitor %s: selector %q selects %d services, want one, or pods are read twice", m.Name, selector, len(found))
		return
	}
	for _, e := range m.Spec.Endpoints {
		if !slices.ContainsFunc(found[0].Spec.Ports, func(p core.ServicePort) bool { return p.Name == e.Port }) {
			c.fault("ServiceMonitor %s: Service %s has no port %s", m.Name, found[0].Name, e.Port)
		}
	}
}
