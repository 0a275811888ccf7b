package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kvca/bench/fake"
	"kvca/bench/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pretend makes nodes that answer /cluster/status with the texts, named a, b and
// so on.
func pretend(t *testing.T, statuses ...string) []*Node {
	var list []*Node
	for i, text := range statuses {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }))
		t.Cleanup(s.Close)
		name := string(rune('a' + i))
		list = append(list, &Node{
			Place:   Place{Name: name},
			Running: &gateway.Running{Name: name, Admin: strings.TrimPrefix(s.URL, "http://")},
		})
	}
	return list
}

const (
	fineA = `{"members":[{"name":"a","state":"alive","ready":true,"link":"self"},{"name":"b","state":"alive","ready":true,"link":"up"}],
		"backends":[{"id":"fake-0","owner":"b","active":3}],"block_map":{"locations":7},"divergence":{"b":0,"gone":5}}`
	fineB = `{"members":[{"name":"b","state":"alive","ready":true,"link":"self"},{"name":"a","state":"alive","ready":true,"link":"up"}],
		"backends":[{"id":"fake-0","owner":"b","active":3}],"block_map":{"locations":7},"divergence":{"a":0}}`
)

func threeActive(context.Context) (fake.Stats, error) {
	return fake.Stats{Backends: []fake.BackendStats{{Active: 3}}}, nil
}

func TestChecksFindWhatIsWrong(t *testing.T) {
	checks := map[string]func(ctx context.Context, list []*Node) error{
		"whole": Whole, "owned": Owned, "same maps": SameMaps, "at rest": AtRest,
		"exact": func(ctx context.Context, list []*Node) error { return Exact(ctx, list, threeActive) },
	}
	for _, c := range []struct{ name, from, to, broken string }{
		{"all is well", "", "", "at rest"},
		{"suspect", `"name":"b","state":"alive"`, `"name":"b","state":"suspect"`, "at rest, whole"},
		{"not linked", `"link":"up"`, `"link":"down"`, "at rest, whole"},
		{"not ready", `"ready":true,"link":"up"`, `"ready":false,"link":"up"`, "at rest, whole"},
		{"a stranger owns", `"owner":"b"`, `"owner":"gone"`, "at rest, owned"},
		{"owners differ", `"owner":"b"`, `"owner":"a"`, "at rest, owned"},
		{"another load", `"active":3`, `"active":2`, "at rest, exact"},
		{"no load", `"active":3`, `"active":0`, "exact"},
		{"backend unknown", `fake-0`, `fake-1`, "at rest, exact"},
		{"maps differ", `"b":0`, `"b":1`, "at rest, same maps"},
		{"maps were not compared", `"b":0`, `"c":0`, "at rest, same maps"},
		{"sizes differ", `"locations":7`, `"locations":8`, "at rest, same maps"},
	} {
		list := pretend(t, strings.Replace(fineA, c.from, c.to, 1), fineB)
		if c.name == "no load" {
			list = list[:1]
		}
		var broken []string
		for name, check := range checks {
			if check(t.Context(), list) != nil && (c.name != "no load" || name == "at rest" || name == "exact") {
				broken = append(broken, name)
			}
		}
		slices.Sort(broken)
		if got := strings.Join(broken, ", "); got != c.broken {
			t.Errorf("%s: broken are %q, want %q", c.name, got, c.broken)
		}
	}
}

func TestAwaitTellsWhatWasLastWrong(t *testing.T) {
	tries := 0
	if _, err := Await(t.Context(), time.Minute, func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	_, err := Await(t.Context(), 30*time.Millisecond, func(context.Context) error { return errors.New("still wrong") })
	if err == nil || !strings.Contains(err.Error(), "still wrong") {
		t.Errorf("error %v", err)
	}
}

func TestCommandLineNamesTheOthers(t *testing.T) {
	places, err := Local(5)
	if err != nil {
		t.Fatal(err)
	}
	places[1].Enter = []string{"ip", "netns", "exec", "x"}
	c := &Cluster{Config: Config{Kvca: "kvca", Places: places, Backends: []string{"http://b"}, Flags: []string{"--ttl", "1m"}}}
	args := strings.Join((&Node{Place: places[1], cluster: c}).args(), " ")
	for _, want := range []string{
		"ip netns exec x kvca serve --node-name node-1 ", "--gossip " + places[1].Gossip, "--join " + places[0].Gossip,
		"--join " + places[3].Gossip, "--backend fake-0=http://b", "--ttl 1m",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("%q lacks %q", args, want)
		}
	}
	if strings.Contains(args, "--join "+places[1].Gossip) || strings.Count(args, "--join") != maxJoin {
		t.Errorf("joins in %q", args)
	}
}

func TestBalancerKeepsToTheNodesThatAreReady(t *testing.T) {
	ready, refused := pretend(t, "ok")[0], &Node{Place: Place{Name: "b", Client: "b:1", Admin: "127.0.0.1:1"}}
	ready.Place.Admin, ready.Client = ready.Running.Admin, "a:1"
	b := Watch(t.Context(), []*Node{ready, refused}, time.Millisecond)
	defer b.Close()
	if _, err := Await(t.Context(), 10*time.Second, func(context.Context) error {
		if got := b.Ready(); !slices.Equal(got, []string{"a:1"}) {
			return fmt.Errorf("ready are %q", got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if why := b.Why(); why == nil || !strings.Contains(why.Error(), "refused") {
		t.Errorf("away since %v", why)
	}
}
