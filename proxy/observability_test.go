package proxy

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	dashboardFile  = "../.deploy/grafana/kvca.json"
	alertsFile     = "../.deploy/prometheus/alerts.yaml"
	alertTestsFile = "../.deploy/prometheus/alerts_test.yaml"
)

// knownMetrics are the metrics of the README's table, which other tests hold against
// the registry, and their labels.
func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(kvca_[a-z_]+)` \\| ([a-z_, ]*) ?\\|").FindAllStringSubmatch(string(readme), -1) {
		known[row[1]] = strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(known) < 50 {
		t.Fatalf("the README's table has only %d metrics", len(known))
	}
	return known
}

var (
	metricName  = regexp.MustCompile(`kvca_[a-z_]+`)
	selector    = regexp.MustCompile(`(kvca_[a-z_]+)\{([^}]*)\}`)
	matcherName = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
)

// base is the metric that a series of a histogram belongs to.
func base(name string, known map[string][]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if of, ok := strings.CutSuffix(name, suffix); ok && known[of] != nil {
			return of
		}
	}
	return name
}

// checkExpression holds the metrics and the labels that an expression names against
// those that there are.
func checkExpression(t *testing.T, where, expr string, known map[string][]string) {
	t.Helper()
	for _, name := range metricName.FindAllString(expr, -1) {
		if _, ok := known[base(name, known)]; !ok {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		labels := known[base(s[1], known)]
		for _, m := range matcherName.FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(labels, m[1]) && !slices.Contains([]string{"job", "instance", "le"}, m[1]) {
				t.Errorf("%s: %s has no label %s, only %v", where, s[1], m[1], labels)
			}
		}
	}
}

func TestDashboardNamesMetricsThatAreThere(t *testing.T) {
	known := knownMetrics(t)
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Definition string }
		}
	}
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	expressions := 0
	ids := make(map[int]bool)
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q has an id that is taken, or is wider than the board", p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			expressions++
			checkExpression(t, "panel "+p.Title, target.Expr, known)
		}
	}
	for _, v := range board.Templating.List {
		checkExpression(t, "variable", v.Definition, known)
	}
	if expressions < 50 {
		t.Errorf("only %d expressions were looked at", expressions)
	}
}

type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []alert }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 15 {
		t.Fatalf("only %d alerts were read", len(all))
	}
	return all
}

func TestAlertsNameMetricsThatAreThereAndSayWhatToDo(t *testing.T) {
	known := knownMetrics(t)
	tests, err := os.ReadFile(alertTestsFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range readAlerts(t) {
		checkExpression(t, "alert "+a.Alert, a.Expr, known)
		for _, key := range []string{"summary", "meaning", "action"} {
			if a.Annotations[key] == "" {
				t.Errorf("alert %s has no annotation %s", a.Alert, key)
			}
			checkExpression(t, "alert "+a.Alert+", "+key, a.Annotations[key], known)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("alert %s has severity %q", a.Alert, a.Labels["severity"])
		}
		if !strings.Contains(string(tests), `alertname="`+a.Alert+`"`) {
			t.Errorf("no rule test expects alert %s", a.Alert)
		}
	}
	checkExpression(t, "rule tests", string(tests), known)
}

// promtool runs Prometheus's own checker.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian's package prometheus has it)")
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Stdin = strings.NewReader(stdin)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestPromtoolAcceptsAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", alertsFile)
}

func TestAlertsFireOnWhatTheyAreFor(t *testing.T) {
	promtool(t, "", "test", "rules", alertTestsFile)
}

func TestPromtoolAcceptsLiveMetrics(t *testing.T) {
	g := newRig(t, 2)
	g.expect(200, "/v1/chat/completions", chat(long(1, 2000)))
	promtool(t, g.metrics(), "check", "metrics")
}
