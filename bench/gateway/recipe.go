package gateway

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNotInstalled means that a gateway's program is not on this machine.
var ErrNotInstalled = errors.New("not installed")

// Env is what gateways are started with.
type Env struct {
	// Kvca and Self are the paths of kvca and of this program, which has the bare
	// proxy as a subcommand.
	Kvca, Self string
	// Venvs holds a Python environment per peer.
	Venvs string
	// Dir takes logs and configuration.
	Dir string
	// Backends are base URLs.
	Backends []string
	// KvcaFlags are added to kvca's command line.
	KvcaFlags []string
}

// recipe makes the command line of a gateway that serves clients on port, and
// whatever it serves beside them on second.
type recipe func(e *Env, port, second int) (args []string, err error)

var recipes = map[string]recipe{
	"kvca":             kvca,
	"plain":            plain,
	"nginx":            nginx,
	"smg":              smg,
	"sglang-router":    sglang,
	"vllm-router":      vllm("cache_aware"),
	"vllm-router-hash": vllm("consistent_hash"),
	"kvca-round-robin": kvcaPolicy("round-robin"),
	"kvca-two-phase":   kvcaPolicy("two-phase"),
}

// Peers are the Python packages that can be installed, each in its own
// environment, since two of them bring programs of the same name.
func Peers() []string { return []string{"smg", "sglang-router", "vllm-router"} }

// Names are all gateways, in the order in which tables list them.
func Names() []string {
	return []string{"kvca", "plain", "nginx", "vllm-router-hash", "sglang-router", "smg", "vllm-router"}
}

// Choose reads a list of names: "all", or names with commas between them.
func Choose(list string) ([]string, error) {
	if list == "all" {
		return Names(), nil
	}
	names := strings.Split(list, ",")
	for _, n := range names {
		if recipes[n] == nil {
			return nil, fmt.Errorf("gateway %q is unknown, want some of %s", n, strings.Join(Names(), ", "))
		}
	}
	return slices.Compact(names), nil
}

func kvca(e *Env, port, admin int) ([]string, error) {
	if _, err := exec.LookPath(e.Kvca); err != nil {
		return nil, fmt.Errorf("%s: %w (build it first)", e.Kvca, ErrNotInstalled)
	}
	args := []string{e.Kvca, "serve", "--listen", local(port), "--admin", local(admin), "--log-level", "warn"}
	for i, b := range e.Backends {
		args = append(args, "--backend", fmt.Sprintf("fake-%d=%s", i, b))
	}
	return append(args, e.KvcaFlags...), nil
}

func kvcaPolicy(policy string) recipe {
	return func(e *Env, port, admin int) ([]string, error) {
		args, err := kvca(e, port, admin)
		return append(args, "--policy", policy), err
	}
}

func plain(e *Env, port, _ int) ([]string, error) {
	return []string{e.Self, "plain", "-listen", local(port), "-backends", strings.Join(e.Backends, ",")}, nil
}

func smg(e *Env, port, metrics int) ([]string, error) {
	return python(e, "smg", append([]string{"smg", "launch"}, routerFlags(e, port, metrics, "cache_aware", "warn")...))
}

func sglang(e *Env, port, metrics int) ([]string, error) {
	return python(e, "sglang-router", append([]string{"sglang-router", "launch"}, routerFlags(e, port, metrics, "cache_aware", "warn")...))
}

func vllm(policy string) recipe {
	return func(e *Env, port, metrics int) ([]string, error) {
		return python(e, "vllm-router", append([]string{"vllm-router"}, routerFlags(e, port, metrics, policy, "warning")...))
	}
}

// routerFlags are those that the three routers have in common. Logging is
// quiet for all, as it is for kvca.
func routerFlags(e *Env, port, metrics int, policy, logLevel string) []string {
	args := []string{
		"--host", "127.0.0.1", "--port", strconv.Itoa(port), "--prometheus-port", strconv.Itoa(metrics),
		"--policy", policy, "--log-level", logLevel, "--worker-urls",
	}
	return append(args, e.Backends...)
}

// python puts the program of an environment in front of its arguments.
func python(e *Env, environment string, args []string) ([]string, error) {
	program := filepath.Join(e.Venvs, environment, "bin", args[0])
	if _, err := exec.LookPath(program); err != nil {
		return nil, ErrNotInstalled
	}
	return append([]string{program}, args[1:]...), nil
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
