package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// runCluster starts that many nodes that join the first and share its two
// simulated backends, and waits until they route as one.
func runCluster(t *testing.T, count int, flags map[string][]string) []*running {
	t.Helper()
	var nodes []*running
	for i := range count {
		nodes = append(nodes, runMember(t, fmt.Sprintf("gw-%d", i), nodes, flags))
	}
	for _, r := range nodes {
		r.eventually(t, "linked with all", func() bool { return r.meets(count) })
	}
	return nodes
}

// runMember starts a node that joins the first of those before it.
func runMember(t *testing.T, name string, before []*running, flags map[string][]string) *running {
	t.Helper()
	given := map[string][]string{
		"node-name": {name}, "gossip": {"127.0.0.1:0"}, "link": {"127.0.0.1:0"}, "debug-headers": {"true"},
		"simulate": {"2"}, "simulate-speed": {"100"},
	}
	if len(before) > 0 {
		given["join"] = []string{before[0].gossip()}
		delete(given, "simulate")
		for _, e := range before[0].engines {
			given["backend"] = append(given["backend"], e.id+"="+e.config().URL)
		}
	}
	for name, values := range flags {
		if given[name] = values; values == nil {
			delete(given, name)
		}
	}
	return run(t, given)
}

// eventually waits for what must come.
func (r *running) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not %s; status %+v", r.settings.proxy.Node, what, r.status(t))
		}
	}
}

func (r *running) status(t *testing.T) *clusterStatus {
	t.Helper()
	s, _, err := fetchStatus(t.Context(), adminAPI{base: r.AdminURL()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// backend is a backend's status, nil where the node does not know it.
func (r *running) backend(t *testing.T, id string) *backendStatus {
	t.Helper()
	all := r.status(t).Backends
	if i := slices.IndexFunc(all, func(b backendStatus) bool { return b.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

func TestNodesFindEachOtherAndAgreeOnOwners(t *testing.T) {
	nodes := runCluster(t, 3, nil)
	owners := make(map[string]string)
	owned := 0
	for _, r := range nodes {
		s := r.status(t)
		if !s.Ready || len(s.Members) != 3 || len(s.Backends) != 2 || s.Members[0].Name != r.settings.proxy.Node || s.Members[0].Link != "self" {
			t.Errorf("status of %s: %+v", r.settings.proxy.Node, s)
		}
		for _, m := range s.Members {
			if m.State != "alive" || m.Client == "" {
				t.Errorf("%s sees %+v", r.settings.proxy.Node, m)
			}
		}
		owned += s.Members[0].Owned
		for _, b := range s.Backends {
			if first := owners[b.ID]; first != "" && first != b.Owner || !strings.HasPrefix(b.Owner, "gw-") {
				t.Errorf("%s says that %s owns %s, another that %s does", r.settings.proxy.Node, b.Owner, b.ID, first)
			}
			owners[b.ID] = b.Owner
		}
	}
	if owned != 2 {
		t.Errorf("%d backends are owned, want each of 2 once", owned)
	}
	out, errs, code := kvca(t, "", "status", "--admin", nodes[1].AdminURL())
	for _, want := range []string{"gw-0", "gw-1", "gw-2", "self", "up"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("status: no %q in %q, errors %q", want, out, errs)
		}
	}
}

func TestFollowUpAtAnotherNodeReachesTheBackendOfItsConversation(t *testing.T) {
	nodes := runCluster(t, 3, nil)
	first, text := nodes[0].chat(t, conversation(4000, false))
	if first.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", first.Status, text)
	}
	at := first.Header.Get("X-KVCA-Backend")
	for _, r := range nodes[1:] {
		r.eventually(t, "told of the first turn", func() bool { return r.status(t).BlockMap.Locations > 0 })
		out, errs, code := kvca(t, conversation(4000, true), "explain", "--admin", r.AdminURL(), "--json")
		if owner := `"owner": "` + r.backend(t, at).Owner + `"`; code != 0 || !strings.Contains(out, owner) {
			t.Errorf("explain: no %s in %q, errors %q", owner, out, errs)
		}
		next, _ := r.chat(t, conversation(4000, true))
		if b, reason := next.Header.Get("X-KVCA-Backend"), next.Header.Get("X-KVCA-Reason"); b != at || reason != "hit" {
			t.Errorf("%s sends the follow-up to %q for %q, the first turn was at %q", r.settings.proxy.Node, b, reason, at)
		}
	}
	for _, r := range nodes {
		r.eventually(t, "at rest", func() bool {
			s := r.status(t)
			return s.Reservations.Held == 0 && s.Backends[0].Active+s.Backends[1].Active == 0
		})
	}
}

func TestOperatorOfOneNodeDrainsForAll(t *testing.T) {
	nodes := runCluster(t, 2, nil)
	for _, step := range []struct{ path, health string }{{"drain", "draining"}, {"undrain", "healthy"}} {
		answer, err := nodes[0].http.Post(nodes[0].AdminURL()+"/backends/sim-1/"+step.path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		for _, r := range nodes {
			r.eventually(t, step.health, func() bool { return r.backend(t, "sim-1").Health == step.health })
		}
	}
}

func TestNodeWithoutBackendsLearnsThoseOfItsPeers(t *testing.T) {
	giver := runCluster(t, 1, nil)[0]
	learner := runMember(t, "gw-1", []*running{giver}, map[string][]string{"backend": nil})
	learner.eventually(t, "told of the backends", func() bool {
		b := learner.backend(t, "sim-0")
		return b != nil && b.Learned && b.Health == "healthy"
	})
	if answer, text := learner.chat(t, conversation(10, false)); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
	request, err := http.NewRequest(http.MethodDelete, giver.AdminURL()+"/backends/sim-0", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := giver.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	learner.eventually(t, "told of the removal", func() bool { return learner.backend(t, "sim-0") == nil })
	if learner.backend(t, "sim-1") == nil {
		t.Error("the other backend is gone too")
	}
}

func TestNodeThatStopsLeavesItsBackendsToTheOthers(t *testing.T) {
	nodes := runCluster(t, 3, map[string][]string{
		"cluster-secret-file": {writeFile(t, "secret", strings.Repeat("s", 32)+"\n")},
	})
	nodes[2].stop()
	if err := nodes[2].ends(t); err != nil {
		t.Error(err)
	}
	for _, r := range nodes[:2] {
		r.eventually(t, "told of the goodbye", func() bool {
			s := r.status(t)
			gone := slices.ContainsFunc(s.Members, func(m memberStatus) bool { return m.Name == "gw-2" && m.State == "left" })
			kept := !slices.ContainsFunc(s.Backends, func(b backendStatus) bool { return b.Owner == "gw-2" })
			return gone && kept
		})
	}
	if answer, text := nodes[1].chat(t, conversation(10, false)); answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", answer.Status, text)
	}
}

// What `promtool check metrics` checks, of a node with peers, and that each metric
// has its line in the README.
func TestMetricsOfPeersAreCleanAndListed(t *testing.T) {
	nodes := runCluster(t, 2, nil)
	nodes[0].chat(t, conversation(4000, false))
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := adminAPI{base: nodes[0].AdminURL()}.call(t.Context(), http.MethodGet, "/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.New(strings.NewReader(string(text))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families := 0
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(line, "# TYPE ")
		name, _, _ := strings.Cut(line, " ")
		if !ok || !strings.HasPrefix(name, "kvca_") {
			continue
		}
		families++
		if !strings.Contains(string(readme), "`"+name+"`") {
			t.Errorf("README does not list the metric %s", name)
		}
	}
	if families < 50 {
		t.Errorf("only %d metrics", families)
	}
}
