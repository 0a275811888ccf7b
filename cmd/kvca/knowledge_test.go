package main

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// informed starts that many nodes on backends that publish events; the first reads
// them, the others too only where they are told to.
func informedCluster(t *testing.T, count int, all bool) []*running {
	t.Helper()
	first := runMember(t, "gw-0", nil, map[string][]string{"simulate-events": {"true"}})
	nodes := []*running{first}
	for i := 1; i < count; i++ {
		flags := map[string][]string{}
		for _, e := range first.engines {
			if all {
				flags["events"] = append(flags["events"], e.id+"="+e.config().Events)
			}
		}
		nodes = append(nodes, runMember(t, "gw-"+strconv.Itoa(i), nodes, flags))
	}
	for _, r := range nodes {
		r.eventually(t, "linked with all", func() bool { return r.meets(count) })
		r.eventually(t, "told by both engines", func() bool { return r.live(t) == 2 })
	}
	return nodes
}

// live is how many sources of the index are live.
func (r *running) live(t *testing.T) (n int) {
	t.Helper()
	for _, s := range r.status(t).Index.Sources {
		if s.State == "live" {
			n++
		}
	}
	return n
}

// predicts waits until the node predicts cached tokens for a body, and returns them.
func (r *running) predicts(t *testing.T, body string) (tokens int) {
	t.Helper()
	r.eventually(t, "predicting cached tokens", func() bool {
		resp, _ := r.chat(t, body)
		tokens, _ = strconv.Atoi(resp.Header.Get("X-KVCA-Predicted-Tokens"))
		return tokens > 0
	})
	return tokens
}

func TestNodesRouteByWhatEnginesSay(t *testing.T) {
	for name, all := range map[string]bool{"each node reads": true, "one node reads for all": false} {
		t.Run(name, func(t *testing.T) {
			nodes := informedCluster(t, 2, all)
			body := conversation(4000, false)
			nodes[0].chat(t, body)
			for _, r := range nodes {
				var resp *http.Response
				r.eventually(t, "predicting what the engine says", func() bool {
					var text string
					resp, text = r.chat(t, body)
					predicted := resp.Header.Get("X-KVCA-Predicted-Tokens")
					return predicted > "0" && strings.Contains(text, `"cached_tokens":`+predicted+",")
				})
				if fallback := resp.Header.Get("X-KVCA-Fallback"); fallback != "" {
					t.Errorf("fallback %q", fallback)
				}
			}
			by := nodes[1].status(t).Index.Sources[0].By
			if want := map[bool]string{true: "events", false: "peer gw-0"}[all]; by != want {
				t.Errorf("gw-1 knows by %q, want %q", by, want)
			}
			out, errs, code := kvca(t, "", "status", "--admin", nodes[1].AdminURL())
			if code != 0 || !strings.Contains(out, "precise index") || !strings.Contains(out, by) {
				t.Errorf("status: %q, errors %q", out, errs)
			}
		})
	}
}

func TestAClearedCacheIsForgotten(t *testing.T) {
	nodes := informedCluster(t, 1, true)
	r, body := nodes[0], conversation(4000, false)
	r.chat(t, body)
	r.predicts(t, body)
	for _, e := range r.engines {
		post(t, e.config().URL+"/sim/clear")
	}
	// An engine tells it with its next step: prompts that nobody has seen reach each.
	n := 0
	r.eventually(t, "told that the caches are empty", func() bool {
		n++
		r.chat(t, strings.Replace(body, `"content":"a`, `"content":"`+strconv.Itoa(n)+` is how this one begins, `, 1))
		return r.explained(t, body) == 0
	})
}

// explained is how many cached tokens the node would predict.
func (r *running) explained(t *testing.T, body string) int {
	t.Helper()
	out, errs, code := kvca(t, body, "explain", "--admin", r.AdminURL(), "--json")
	if code != 0 {
		t.Fatalf("explain: %s", errs)
	}
	_, rest, found := strings.Cut(out, `"predicted_cached_tokens": `)
	if !found {
		return 0
	}
	digits, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEventsOfVariablesAreCutAtCommas(t *testing.T) {
	s, err := resolve(sources{env: func(name string) (string, bool) {
		v, ok := map[string]string{
			"KVCA_EVENTS": "a=tcp://h:1,tcp://h:2,b=auto,c=bind:tcp://0.0.0.0:3",
		}[name]
		return v, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a": "tcp://h:1,tcp://h:2", "b": "auto", "c": "bind:tcp://0.0.0.0:3"} {
		if got := s.index.eventsOf(id, ""); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if got := s.index.eventsOf("a", "auto"); got != "auto" {
		t.Errorf("the backend's own counts first, got %q", got)
	}
}

func TestIndexSettingsThatDoNothingAreFaults(t *testing.T) {
	agents := writeFile(t, "agents", "host "+agentToken+" a\n")
	for _, c := range []struct {
		flags map[string][]string
		want  string
	}{
		{map[string][]string{"tokens": {"local"}}, "--tokens: local: there is no tokenizer"},
		{map[string][]string{"simulate-events": {"true"}}, "--simulate-events: there is no simulated backend"},
		{map[string][]string{"agents-file": {agents}, "gossip": {off}}, "--agents-file: "},
		{map[string][]string{"agents-file": {"/nonexistent"}}, `--agents-file: "/nonexistent" can't be read`},
		{map[string][]string{"agents-file": {writeFile(t, "agents", "host short a")}}, "line 1: a token of 5 bytes"},
		{map[string][]string{"tokenizer": {"m=/nonexistent"}}, `--tokenizer: "m=/nonexistent": can't be read`},
		{map[string][]string{"tokenizer": {t.TempDir()}}, "want a folder with tokenizer.json"},
	} {
		_, err := resolve(sources{flag: flagsAre(c.flags)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q in it", c.flags, err, c.want)
		}
	}
	_, err := resolve(sources{
		file: writeFile(t, "kvca.yaml", "backend:\n  - {id: a, url: http://a:1, events: auto}\n"),
		flag: flagsAre(map[string][]string{"events": {"a=auto"}}),
	})
	if err == nil || !strings.Contains(err.Error(), "--events: a is given twice") {
		t.Errorf("events of a backend given twice: %v", err)
	}
}

func TestAgentsFilesThatOthersReadAreWarnedOf(t *testing.T) {
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o640: 1} {
		agents := writeFile(t, "agents", "host "+agentToken+" a\n")
		if err := os.Chmod(agents, mode); err != nil {
			t.Fatal(err)
		}
		s, err := resolve(sources{flag: flagsAre(map[string][]string{"agents-file": {agents}})})
		if err != nil || len(s.warnings) != want {
			t.Errorf("mode %v: error %v, warnings %q, want %d", mode, err, s.warnings, want)
		}
	}
}

func TestEventsOfBackendsThatAreNotThereAreWarnedOf(t *testing.T) {
	var logs bytes.Buffer
	s := onItsOwn(t, map[string][]string{"simulate": {"1"}, "events": {"sim-0=auto", "gpu-9=auto", "*=auto"}})
	n, err := newNode(s, slog.New(slog.NewTextHandler(&logs, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.addBackends(); err != nil {
		t.Fatal(err)
	}
	logs.Reset()
	n.warnOfStrangers()
	if got := logs.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "backends=gpu-9\n") {
		t.Errorf("logged %q", got)
	}
}

func TestIndexOptionsSayWhatIsWrong(t *testing.T) {
	for flag, cases := range map[string]map[string]string{
		"events":         {"tcp://h:1": "want ID=ENDPOINT", "a=http://h": "can't be used", "*=tcp://h:1": "want *=auto", "a=tcp://*:1": "bind:tcp://*:1"},
		"weights":        {"cache=1,tape=2": "names cache, load, tier", "cache=x": `cache: "x" is no number: want`, "cache=-1": "from 0 on"},
		"tier-weights":   {"gpu=2": "--tier-weights: gpu is 2: want 0 to 1", "tape=1": "names cpu, gpu, remote, ssd"},
		"guard":          {"32": "REQUESTS,FACTOR", "-1,1": "--guard: REQUESTS is -1: want", "1,-2": "FACTOR is -2", "5,x": `"5,x": FACTOR: "x" is no number`},
		"index-fallback": {"m=perhaps": "want [MODEL=]WAY", "=map": "want [MODEL=]WAY"},
		"block-hashes":   {"a=sha256_cbor": "want ID=ALGORITHM/TOKENS", "a=sha256_cbor/0": "want 1 to", "a=md5/16": "md5", "a=xxhash_cbor/16": "seed"},
		"tokens":         {"both": "want one of auto, engine, local"},
	} {
		for value, want := range cases {
			_, err := resolve(sources{flag: flagsAre(map[string][]string{flag: {value}})})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("--%s %s: %v, want %q in it", flag, value, err, want)
			}
		}
	}
}
