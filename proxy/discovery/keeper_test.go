package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"kvca/proxy/backend"
)

func TestWhatIsFoundIsAddedOnce(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.want(t, "add a, add b")
		k.sources[0].say("a", "b", "c")
		k.want(t, "add c")
		later(time.Hour)
		k.want(t, "")
	})
}

func TestWhatVanishesIsDrainedAndRemovedWhenItsRequestsHaveEnded(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.pool.setActive("b", 2)
		k.pool.happened()
		k.sources[0].say("a")
		k.want(t, "drain b")
		later(20 * time.Second)
		k.want(t, "")
		k.pool.setActive("b", 0)
		later(2 * time.Second)
		k.want(t, "remove b")
	})
}

func TestRequestsThatDoNotEndAreWaitedForUntilTheDrainTimeout(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.pool.setActive("b", 1)
		k.pool.happened()
		k.sources[0].say("a")
		later(usualDrain - 2*time.Second)
		k.want(t, "drain b")
		later(4 * time.Second)
		k.want(t, "remove b")
	})
}

func TestWhatReturnsInTimeIsUndrained(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.pool.setActive("b", 1)
		k.pool.happened()
		k.sources[0].say("a")
		later(5 * time.Second)
		k.sources[0].say("a", "b")
		k.want(t, "drain b, undrain b")
		later(time.Hour)
		k.want(t, "")
	})
}

func TestWhatDrainsIsKeptWhileItIsNamed(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "new!")
		k.want(t, "add a")
		k.sources[0].say("a!", "new")
		k.want(t, "drain a, add new")
		later(time.Hour)
		k.want(t, "")
		k.pool.Undrain("a") // by mistake: it is not ready
		later(2 * time.Second)
		k.want(t, "undrain a, drain a")
		k.sources[0].say("a", "new")
		k.want(t, "undrain a")
	})
}

func TestTheOperatorsDrainIsNotEnded(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.pool.Drain("b")
		k.pool.setActive("b", 1)
		k.pool.happened()
		k.sources[0].say("a")
		later(5 * time.Second)
		k.sources[0].say("a", "b")
		later(time.Minute)
		k.want(t, "")
	})
}

func TestWhatTheOperatorRemovesStaysAwayUntilItVanishesAndReturns(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.pool.Remove("b")
		k.pool.happened()
		k.sources[0].say("a", "b", "c")
		later(time.Minute)
		k.want(t, "add c")
		k.sources[0].say("a", "c")
		k.sources[0].say("a", "b", "c")
		k.want(t, "add b")
	})
}

func TestBackendsOfOthersAreNotTouched(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		if err := k.pool.Add(config("mine")); err != nil {
			t.Fatal(err)
		}
		k.pool.happened()
		k.sources[0].say("mine", "a")
		k.want(t, "add a")
		k.sources[0].say("mine!", "a")
		k.sources[0].say("a")
		later(time.Hour)
		k.want(t, "")
		if n := k.logs.count("id is taken"); n != 1 {
			t.Errorf("%d warnings, want one:\n%s", n, k.logs)
		}
	})
}

func TestOfTwoSourcesTheFirstCounts(t *testing.T) {
	inKeeper(t, 2, func(t *testing.T, k *kept) {
		k.sources[1].say("a", "b")
		k.want(t, "add a, add b")
		k.sources[0].say("b!", "c")
		k.want(t, "drain b, add c")
		k.sources[0].say("c", "d")
		k.want(t, "undrain b, add d")
		k.sources[0].say("b", "c", "d")
		k.sources[0].say("b", "c", "d", "e")
		k.want(t, "add e")
		if n := k.logs.count("id is taken"); n != 2 { // it began twice
			t.Errorf("%d warnings, want 2:\n%s", n, k.logs)
		}
		if !strings.Contains(k.logs.String(), "taken_by=source-0") {
			t.Errorf("who has it is not named:\n%s", k.logs)
		}
	})
}

func TestAnEmptyAnswerCountsOnceItHasStood(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.sources[0].say("a", "b")
		k.pool.happened()
		k.sources[0].say()
		later(20 * time.Second)
		k.sources[0].say("a", "b") // a hiccup
		later(time.Minute)
		k.want(t, "")
		k.sources[0].say()
		later(20 * time.Second)
		k.sources[0].say()
		later(9 * time.Second)
		k.want(t, "")
		later(4 * time.Second)
		k.want(t, "drain a, drain b, remove a, remove b")
	})
}

func TestChangesAreMadeInPlaceAndOtherEnginesStartAnew(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		c := config("a")
		say := func() { k.sources[0].sets <- []backend.Config{c} }
		say()
		k.want(t, "add a")
		c.Weight, c.Zone, c.Models, c.CacheTokens = 2, "z", []string{"m"}, 100
		say()
		k.want(t, "change a")
		c.Instance = "another pod"
		say()
		k.want(t, "remove a, add a")
		c.URL = "http://elsewhere:80"
		say()
		k.want(t, "remove a, add a")
		if got := k.pool.configs["a"]; got.URL != c.URL || got.Weight != 2 {
			t.Errorf("the pool has %+v", got)
		}
		say()
		later(time.Minute)
		k.want(t, "")
	})
}

func TestWhatThePoolRefusesIsTriedAgain(t *testing.T) {
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		k.pool.refuse["a"] = true
		k.sources[0].say("a", "b")
		k.want(t, "add b")
		k.pool.mu.Lock()
		k.pool.refuse["a"] = false
		k.pool.mu.Unlock()
		later(retryAfter + 2*time.Second)
		k.want(t, "add a")
		if n := k.logs.count("the pool refuses"); n != 1 {
			t.Errorf("%d warnings, want one:\n%s", n, k.logs)
		}
	})
}

func TestReadyIsWhenEachSourceHasAnsweredOrLateEnough(t *testing.T) {
	inKeeper(t, 2, func(t *testing.T, k *kept) {
		k.sources[0].say("a")
		if k.Ready() {
			t.Error("ready before the second source has answered")
		}
		k.sources[1].say()
		if !k.Ready() {
			t.Error("not ready though each source has answered")
		}
	})
	inKeeper(t, 1, func(t *testing.T, k *kept) {
		later(readyAfter - time.Millisecond)
		if k.Ready() {
			t.Error("ready too soon")
		}
		later(2 * time.Millisecond)
		if !k.Ready() {
			t.Error("not ready though it was waited for")
		}
	})
}

func TestMetricsSayWhatEachSourceFinds(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := mustParse(t, "dns://fleet:80", Options{}).(*dnsSource)
	s.failed(errFake)
	s.failed(errFake)
	k := NewKeeper(newPool(), []Source{s, s}, nil, reg)
	k.hear(0, []backend.Config{config("a"), config("b!")})
	want := `
# HELP kvca_discovery_backends Backends that the source names, those that are draining included.
# TYPE kvca_discovery_backends gauge
kvca_discovery_backends{source="dns://fleet:80"} 2
# HELP kvca_discovery_errors_total Questions that the source did not answer, and answers that could not be used.
# TYPE kvca_discovery_errors_total counter
kvca_discovery_errors_total{source="dns://fleet:80"} 2
# HELP kvca_discovery_last_success_seconds When the source last answered, in seconds since 1970; 0 for never.
# TYPE kvca_discovery_last_success_seconds gauge
kvca_discovery_last_success_seconds{source="dns://fleet:80"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
