package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"kvca/proxy/backend"
)

func TestEndpointsOfAServiceAreFollowed(t *testing.T) {
	inAPI(t, func(t *testing.T, a *fakeAPI) {
		a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf"), pod("vllm-1", "10.1.0.6", "fff"), pod("vllm-2", "10.1.0.7", "ftt")))
		to := follow(t, mustParse(t, "k8s://vllm", a.options(new(logs))))
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000 vllm-1.models:8000=http://10.1.0.6:8000! vllm-2.models:8000=http://10.1.0.7:8000!")
		if c := to.last()[0]; c.Zone != "eu-1a" || c.Instance != "uid-of-vllm-0-10.1.0.5" {
			t.Errorf("found %+v", c)
		}
		a.set("vllm-b", slice("vllm-b", pod("vllm-3", "10.1.0.8", "---")))
		a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf"), pod("vllm-1", "10.1.0.6", "ttf")))
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000 vllm-1.models:8000=http://10.1.0.6:8000 vllm-3.models:8000=http://10.1.0.8:8000")
		a.set("vllm-a", "")
		to.want(t, "vllm-3.models:8000=http://10.1.0.8:8000")
		if lists, watches := a.asked("limit="), a.asked("watch=1"); lists != 1 || watches != 1 {
			t.Errorf("%d lists and %d watches for it, want one each", lists, watches)
		}
	})
}

func TestPagesAreReadToTheLast(t *testing.T) {
	inAPI(t, func(t *testing.T, a *fakeAPI) {
		a.page = 2
		var want []string
		for i := range 5 {
			name, ip := fmt.Sprint("vllm-", i), fmt.Sprint("10.1.0.", i)
			a.set(name, slice(name, pod(name, ip, "ttf")))
			want = append(want, name+".models:8000=http://"+ip+":8000")
		}
		to := follow(t, mustParse(t, "k8s://models/vllm:http", a.options(new(logs))))
		to.want(t, strings.Join(want, " "))
		if n := a.asked("limit="); n != 3 {
			t.Errorf("%d pages", n)
		}
	})
}

func TestAWatchThatEndsGoesOnFromTheLastBookmark(t *testing.T) {
	inAPI(t, func(t *testing.T, a *fakeAPI) {
		a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")))
		to := follow(t, mustParse(t, "k8s://vllm", a.options(new(logs))))
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
		a.bookmark()
		later(2 * briefWatch)
		a.endWatches()
		if n := a.asked("resourceVersion=111&"); n != 1 {
			t.Errorf("%d watches from the bookmark on: %v", n, a.requests)
		}
		if to.told() != 1 || a.asked("limit=") != 1 {
			t.Error("nothing had changed, and it was told or listed anew")
		}
	})
}

func TestAVersionThatIsGoneIsListedAnew(t *testing.T) {
	for name, gone := range map[string]func(a *fakeAPI){
		"410": func(a *fakeAPI) {},
		"event": func(a *fakeAPI) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.say("ERROR", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 101 (1101)","reason":"Expired","code":410}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inAPI(t, func(t *testing.T, a *fakeAPI) {
				l := new(logs)
				a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")))
				to := follow(t, mustParse(t, "k8s://vllm", a.options(l)))
				to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
				a.mu.Lock()
				delete(a.items, "vllm-a") // an event that nobody gets
				a.mu.Unlock()
				a.forget()
				gone(a)
				later(2 * briefWatch)
				a.endWatches()
				later(10 * time.Second)
				to.want(t, "")
				if n := a.asked("limit="); n != 2 {
					t.Errorf("listed %d times", n)
				}
				if n := l.count("discovery failed"); n != 0 {
					t.Errorf("it is no failure:\n%s", l)
				}
			})
		})
	}
}

func TestWhatAWatchHasMissedIsFoundByTheNextList(t *testing.T) {
	inAPI(t, func(t *testing.T, a *fakeAPI) {
		a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")))
		to := follow(t, mustParse(t, "k8s://vllm", a.options(new(logs))))
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
		a.mu.Lock()
		a.items = map[string]string{}
		a.mu.Unlock()
		later(relistEvery + watchFor + watchSlack) // its watch is cut by its deadline at the latest
		later(time.Minute)
		to.want(t, "")
	})
}

func TestTheTokenIsReadAnewWhenItRotates(t *testing.T) {
	inAPI(t, func(t *testing.T, a *fakeAPI) {
		l := new(logs)
		a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")))
		to := follow(t, mustParse(t, "k8s://vllm", a.options(l)))
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
		a.mu.Lock()
		a.token = "second"
		a.mu.Unlock()
		later(2 * briefWatch)
		a.endWatches()
		if n := l.count("give the pod's service account list and watch"); n != 1 {
			t.Errorf("told %d times of a token that is refused:\n%s", n, l)
		}
		a.write(t, "token", "second")
		later(2 * backoffMost)
		a.set("vllm-a", slice("vllm-a", pod("vllm-9", "10.1.0.9", "ttf")))
		to.want(t, "vllm-9.models:8000=http://10.1.0.9:8000")
		if strings.Contains(l.String(), "first") || strings.Contains(l.String(), "second") {
			t.Errorf("the token was logged:\n%s", l)
		}
	})
}

func TestAFailingAPIIsAskedEverMoreSeldomAndTheLastSetStays(t *testing.T) {
	inAPI(t, func(t *testing.T, a *fakeAPI) {
		l := new(logs)
		a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")))
		s := mustParse(t, "k8s://vllm", a.options(l))
		to := follow(t, s)
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
		later(2 * briefWatch)
		a.answerWith(503)
		a.endWatches()
		before := a.asked("")
		later(10 * time.Minute)
		if n := a.asked("") - before; n < 20 || n > 50 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
		if failures, success := s.(*kubeSource).health(); failures < 20 || time.Since(success) < 9*time.Minute {
			t.Errorf("%d failures, last success %v ago", failures, time.Since(success))
		}
		a.answerWith(0)
		later(2 * backoffMost)
		a.set("vllm-a", slice("vllm-a", pod("vllm-1", "10.1.0.6", "ttf")))
		to.want(t, "vllm-1.models:8000=http://10.1.0.6:8000")
		if l.count("discovery answers again") == 0 {
			t.Errorf("its return is not told:\n%s", l)
		}
	})
}

func TestWhatComesFromTheAPIIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"endless event": `{"type":"ADDED","object":{"metadata":{"name":"` + strings.Repeat("x", maxEventBytes+1<<20),
		"no JSON":       "<html>",
		"no name":       `{"type":"ADDED","object":{"metadata":{}}}`,
		"no such event": `{"type":"RENAMED","object":{"metadata":{"name":"x"}}}`,
		"odd slice":     `{"type":"ADDED","object":{"metadata":{"name":"x"},"endpoints":7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inAPI(t, func(t *testing.T, a *fakeAPI) {
				l := new(logs)
				a.garbage = text
				to := follow(t, mustParse(t, "k8s://vllm", a.options(l)))
				later(time.Minute)
				if n := l.count("discovery failed"); n != 1 {
					t.Errorf("%d failures:\n%.2000s", n, l)
				}
				a.set("vllm-a", slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")))
				to.want(t, "vllm-0.models:8000=http://10.1.0.5:8000")
			})
		})
	}
}

func TestOutsideOfAPodTheReasonIsTold(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	s := mustParse(t, "k8s://models/vllm", Options{}).(*kubeSource)
	if err := s.step(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("%v", err)
	}
	s = mustParse(t, "k8s://vllm", Options{Kubernetes: Kubernetes{NamespaceFile: "/nowhere"}}).(*kubeSource)
	if err := s.step(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "k8s://NAMESPACE/SERVICE") {
		t.Errorf("%v", err)
	}
}

// parsed are slices as a list has them.
func parsed(t testing.TB, texts ...string) map[string]*endpointSlice {
	t.Helper()
	all := make(map[string]*endpointSlice)
	for _, text := range texts {
		s := new(endpointSlice)
		if err := json.Unmarshal([]byte(text), s); err != nil {
			t.Fatal(err)
		}
		all[s.Metadata.Name] = s
	}
	return all
}

func TestPortsAndAddressesOfSlices(t *testing.T) {
	const two = `{"name":"http","port":8000},{"name":"events","port":5557}`
	bare := `{"addresses":["10.1.0.5"]}`
	for name, c := range map[string]struct {
		slices      []string
		port        string
		want, fault string
	}{
		"the usual name":      {[]string{sliceOf("s", "IPv4", two, bare)}, "", "10.1.0.5:8000", ""},
		"a name":              {[]string{sliceOf("s", "IPv4", two, bare)}, "events", "10.1.0.5:5557", ""},
		"a number":            {[]string{sliceOf("s", "IPv4", two, bare)}, "5557", "10.1.0.5:5557", ""},
		"the service's own":   {[]string{sliceOf("s", "IPv4", two, bare)}, "80", "", `"http" (8000), "events" (5557)`},
		"the only one":        {[]string{sliceOf("s", "IPv4", `{"name":"","port":9000}`, bare)}, "", "10.1.0.5:9000", ""},
		"none of two":         {[]string{sliceOf("s", "IPv4", `{"name":"a","port":1},{"name":"b","port":2}`, bare)}, "", "", "name one of them"},
		"headless, a number":  {[]string{sliceOf("s", "IPv4", "", bare)}, "7000", "10.1.0.5:7000", ""},
		"headless, none":      {[]string{sliceOf("s", "IPv4", "", bare)}, "", "", "has the ports"},
		"no endpoints":        {[]string{sliceOf("s", "IPv4", "")}, "", "", ""},
		"no address":          {[]string{sliceOf("s", "IPv4", two, `{"addresses":[]}`)}, "", "", "url"},
		"a name for address":  {[]string{sliceOf("s", "FQDN", two, `{"addresses":["a.example"]}`)}, "", "a.example:8000", ""},
		"nonsense for one":    {[]string{sliceOf("s", "FQDN", two, `{"addresses":["a/../b?"]}`)}, "", "", "url"},
		"both families":       {[]string{sliceOf("a", "IPv6", two, pod("p", "fd00::5", "ttf")), sliceOf("b", "IPv4", two, pod("p", "10.1.0.5", "ttf"))}, "", "p.models:8000=http://10.1.0.5:8000", ""},
		"only IPv6":           {[]string{sliceOf("a", "IPv6", two, bare6)}, "", "[fd00::5]:8000", ""},
		"in two slices":       {[]string{slice("a", pod("p", "10.1.0.5", "ftt")), slice("b", pod("p", "10.1.0.5", "ttf"))}, "", "p.models:8000=http://10.1.0.5:8000", ""},
		"no pod":              {[]string{sliceOf("s", "IPv4", two, `{"addresses":["10.1.0.5"],"targetRef":{"kind":"Node","name":"n"}}`)}, "", "10.1.0.5:8000", ""},
		"a pod's long name":   {[]string{slice("s", pod(strings.Repeat("p", 200), "10.1.0.5", "ttf"))}, "", "10.1.0.5:8000", ""},
		"ready, though ends":  {[]string{slice("s", pod("p", "10.1.0.5", "ttt"))}, "", "p.models:8000=http://10.1.0.5:8000!", ""},
		"serving says no":     {[]string{slice("s", pod("p", "10.1.0.5", "tff"))}, "", "p.models:8000=http://10.1.0.5:8000", ""},
		"odd and good beside": {[]string{sliceOf("s", "IPv4", two, `{"addresses":[]}`, bare)}, "", "10.1.0.5:8000", "url"},
	} {
		choice, err := readPortChoice(c.port)
		if err != nil {
			t.Fatal(err)
		}
		list, err := backendsOf(parsed(t, c.slices...), choice, shape{scheme: "http"})
		if got := show(list); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v, want a fault about %q", name, err, c.fault)
		}
	}
}

const bare6 = `{"addresses":["fd00::5"]}`

func FuzzEvents(f *testing.F) {
	f.Add(`{"type":"ADDED","object":` + slice("vllm-a", pod("vllm-0", "10.1.0.5", "ttf")) + "}\n" + `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`)
	f.Add(`{"type":"ERROR","object":{"code":410}}`)
	f.Add(`{"type":"ADDED","object":` + sliceOf("b", "IPv6", `{"port":70000},{"name":"http","port":-1}`, bare6) + "}")
	f.Fuzz(func(t *testing.T, text string) {
		s := &kubeSource{slices: make(map[string]*endpointSlice)}
		_ = readEvents(strings.NewReader(text), s.take) // any error will do
		list, _ := backendsOf(s.slices, s.port, shape{scheme: "http", config: backend.Config{}})
		ids := make(map[string]bool)
		for _, c := range list {
			if ids[c.ID] || c.Validate() != nil {
				t.Fatalf("found %+v", c)
			}
			ids[c.ID] = true
		}
	})
}
