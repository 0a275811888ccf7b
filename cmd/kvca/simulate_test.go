package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
)

// fewRequests is a Mooncake trace: two requests that begin alike, and a third.
const fewRequests = `{"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 1600, "output_length": 5, "hash_ids": [0, 1, 3, 4]}
{"timestamp": 6000, "input_length": 700, "output_length": 5, "hash_ids": [5, 6]}
`

func TestSimulatePrintsOneObjectForEachPolicy(t *testing.T) {
	file := writeFile(t, "trace.jsonl", fewRequests)
	out, errs, code := kvca(t, "", "simulate", "--trace", file, "--policy", "cost,two-phase", "--policy", "smg", "--backends", "2", "--json")
	if code != 0 {
		t.Fatalf("code %d, errors %q", code, errs)
	}
	var policies []string
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var object map[string]any
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{
			"policy", "nodes", "backends", "seed", "requests", "hit_rate", "follow_up_hit_rate", "ttft_s",
			"load_cov", "max_mean_computed", "peer_bytes_per_s", "degraded", "wall_s",
		} {
			if _, ok := object[name]; !ok {
				t.Errorf("%s is missing in %s", name, lines.Text())
			}
		}
		if object["requests"] != 3.0 || object["backends"] != 2.0 || object["ttft_s"].(map[string]any)["p50"].(float64) <= 0 {
			t.Errorf("%s", lines.Text())
		}
		policies = append(policies, object["policy"].(string))
	}
	if strings.Join(policies, " ") != "cost two-phase smg" {
		t.Errorf("runs of %v", policies)
	}
}

func TestSimulateShowsATable(t *testing.T) {
	file := writeFile(t, "trace.jsonl", fewRequests)
	out, errs, code := kvca(t, "", "simulate", "--trace", file, "--limit", "2")
	if code != 0 || !strings.Contains(out, "2 requests; 1 node, 8 backends of profile 70b, seed 1") || !strings.Contains(out, "TTFT MEAN") || strings.Count(out, "cost") != 1 {
		t.Errorf("code %d, errors %q, output %q", code, errs, out)
	}
}

func TestEveryWorkloadIsGeneratedBySeedAndSpeed(t *testing.T) {
	for _, name := range workloadNames() {
		slow, fast, other := generate(name, 1, 1), generate(name, 1, 2), generate(name, 2, 1)
		if n := slow.Requests(); n < 500 || float64(fast.Requests()) < 1.5*float64(n) || other.Requests() == n && other.Sessions[0].Start == slow.Sessions[0].Start {
			t.Errorf("%s: %d requests, twice as fast %d, of another seed %d", name, n, fast.Requests(), other.Requests())
		}
		if _, errs, code := kvca(t, "", "simulate", "--workload", name, "--limit", "60", "--json"); code != 0 {
			t.Errorf("%s: code %d, errors %q", name, code, errs)
		}
	}
}

func TestFaultsOfASimulationComeTogether(t *testing.T) {
	_, errs, code := kvca(t, "", "simulate", "--workload", "nothing", "--policy", "fastest", "--nodes", "0", "--backends", "0",
		"--profile", "9b", "--speed", "0", "--delay", "-1s", "--sharing", "all", "--sessions", "5", "--limit", "-1", "--max-think", "-1s")
	for _, flag := range []string{"workload", "policy", "nodes", "backends", "profile", "speed", "delay", "sharing", "sessions", "limit", "max-think"} {
		if !strings.Contains(errs, "kvca: --"+flag+": ") {
			t.Errorf("nothing about --%s in %q", flag, errs)
		}
	}
	if code != 1 || strings.Count(errs, "want") < 10 {
		t.Errorf("code %d, errors %q", code, errs)
	}
	if _, errs, code = kvca(t, "", "simulate"); code != 1 || !strings.Contains(errs, "--trace") || !strings.Contains(errs, "--workload") {
		t.Errorf("without anything: code %d, errors %q", code, errs)
	}
	if _, errs, code = kvca(t, "", "simulate", "--trace", "/nowhere"); code != 1 || !strings.Contains(errs, "/nowhere") {
		t.Errorf("without the file: code %d, errors %q", code, errs)
	}
}
