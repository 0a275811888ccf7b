package discovery

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvca/state/virtualtime"
)

// fakeAPI is an API server, as far as slices of one namespace go: TLS, tokens, pages,
// watches with bookmarks, versions that are forgotten.
type fakeAPI struct {
	folder string
	door   *listener
	server *httptest.Server

	mu       sync.Mutex
	token    string
	version  int
	oldest   int // versions before are gone
	items    map[string]string
	history  []change
	wake     chan struct{} // closed and replaced at each change
	ended    chan struct{} // closed to end the watches there are
	status   int           // of every answer; 0 for what is right
	page     int           // items a page
	requests []string      // path and query of each
	garbage  string        // sent in a watch
}

type change struct {
	version int
	text    string
}

// inAPI runs a test beside an API server in a bubble.
func inAPI(t *testing.T, test func(t *testing.T, a *fakeAPI)) {
	t.Helper()
	folder := t.TempDir()
	virtualtime.Test(t, func(t *testing.T) {
		a := &fakeAPI{
			folder: folder, token: "first", version: 100, items: map[string]string{}, page: 500,
			wake: make(chan struct{}), ended: make(chan struct{}),
		}
		a.door = &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
		a.server = httptest.NewUnstartedServer(a)
		a.server.Listener.Close()
		a.server.Listener = a.door
		a.server.StartTLS()
		t.Cleanup(a.server.Close) // after what follow runs has ended
		a.write(t, "token", "first\n")
		a.write(t, "namespace", "models")
		a.write(t, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})))
		test(t, a)
	})
}

func (a *fakeAPI) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *fakeAPI) options(l *logs) Options {
	in := func(name string) string { return filepath.Join(a.folder, name) }
	return Options{Logger: l.logger(), Kubernetes: Kubernetes{
		API: a.server.URL, TokenFile: in("token"), CAFile: in("ca.crt"), NamespaceFile: in("namespace"),
		dial: a.door.dial,
	}}
}

// set changes a slice; an empty text deletes it.
func (a *fakeAPI) set(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	kind := "MODIFIED"
	switch {
	case text == "":
		kind, text = "DELETED", a.items[name]
		delete(a.items, name)
	case a.items[name] == "":
		kind = "ADDED"
		fallthrough
	default:
		text = strings.ReplaceAll(text, "VERSION", strconv.Itoa(a.version))
		a.items[name] = text
	}
	if kind == "DELETED" {
		text = withVersion(text, a.version)
	}
	a.say(kind, text)
}

// withVersion puts another version into a slice.
func withVersion(text string, version int) string {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(version)
	b, _ := json.Marshal(object)
	return string(b)
}

// say sends an event to who watches. The lock is held.
func (a *fakeAPI) say(kind, object string) {
	a.history = append(a.history, change{a.version, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)})
	close(a.wake)
	a.wake = make(chan struct{})
}

// bookmark tells a version at which nothing of the service has changed.
func (a *fakeAPI) bookmark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version += 10
	a.say("BOOKMARK", fmt.Sprintf(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"%d","creationTimestamp":null},"addressType":"","endpoints":null,"ports":null}`, a.version))
}

// forget makes every version before this one gone, without telling.
func (a *fakeAPI) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version += 1000
	a.oldest = a.version
}

func (a *fakeAPI) answerWith(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

// endWatches ends the watches that there are.
func (a *fakeAPI) endWatches() {
	a.mu.Lock()
	close(a.ended)
	a.ended = make(chan struct{})
	a.mu.Unlock()
	synctest.Wait()
}

// asked counts requests that hold a text.
func (a *fakeAPI) asked(part string) int {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, r := range a.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r.URL.Path+"?"+r.URL.RawQuery)
	status, token, oldest := a.status, a.token, a.oldest
	a.mu.Unlock()
	q := r.URL.Query()
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		fault(w, 401, "Unauthorized", "Unauthorized")
	case status != 0:
		fault(w, status, "Forbidden", `endpointslices.discovery.k8s.io is forbidden: User "system:serviceaccount:models:kvca" cannot list resource`)
	case r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/models/endpointslices" || q.Get("labelSelector") != "kubernetes.io/service-name=vllm":
		fault(w, 404, "NotFound", "the server could not find the requested resource")
	case q.Get("watch") == "":
		a.list(w, q.Get("continue"))
	case version < oldest:
		fault(w, 410, "Expired", fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
	default:
		a.watch(w, r, version)
	}
}

func fault(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, status)
}

func (a *fakeAPI) list(w http.ResponseWriter, from string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	start, _ := strconv.Atoi(from)
	var items []string
	for _, name := range slices.Sorted(maps.Keys(a.items)) {
		items = append(items, a.items[name])
	}
	end, next := min(start+a.page, len(items)), ""
	if end < len(items) {
		next = strconv.Itoa(end)
	}
	fmt.Fprintf(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`,
		a.version, next, strings.Join(items[start:end], ","))
}

func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request, version int) {
	w.WriteHeader(http.StatusOK)
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	over := time.NewTimer(time.Duration(seconds) * time.Second)
	defer over.Stop()
	for {
		a.mu.Lock()
		var due []string
		for _, c := range a.history {
			if c.version > version {
				due, version = append(due, c.text), c.version
			}
		}
		if a.garbage != "" {
			due, a.garbage = append(due, a.garbage), ""
		}
		wake, ended := a.wake, a.ended
		a.mu.Unlock()
		for _, text := range due {
			io.WriteString(w, text)
		}
		w.(http.Flusher).Flush()
		select {
		case <-wake:
		case <-ended:
			return
		case <-over.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// listener is a listener without sockets.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pod is an endpoint as the API has it. Its conditions are three letters, for ready,
// serving and terminating: t, f, or - for one that is missing.
func pod(name, ip, conditions string) string {
	var set []string
	for i, kind := range []string{"ready", "serving", "terminating"} {
		switch conditions[i] {
		case 't':
			set = append(set, `"`+kind+`":true`)
		case 'f':
			set = append(set, `"`+kind+`":false`)
		}
	}
	return fmt.Sprintf(`{"addresses":[%q],"conditions":{%s},"targetRef":{"kind":"Pod","namespace":"models","name":%q,"uid":"uid-of-%s-%s"},"nodeName":"node-1","zone":"eu-1a"}`,
		ip, strings.Join(set, ","), name, name, ip)
}

// slice is an EndpointSlice as the API sends it.
func slice(name string, endpoints ...string) string {
	return sliceOf(name, "IPv4", `{"name":"http","port":8000,"protocol":"TCP"},{"name":"events","port":5557,"protocol":"TCP"}`, endpoints...)
}

func sliceOf(name, family, ports string, endpoints ...string) string {
	return fmt.Sprintf(`{"kind":"EndpointSlice","apiVersion":"discovery.k8s.io/v1","metadata":{"name":%q,"generateName":"vllm-","namespace":"models","uid":"5d3b9a1e-7a3f-4a0b-9d1b-0a3b6d6c2f11","resourceVersion":"VERSION","generation":3,"creationTimestamp":"2026-11-02T09:14:07Z","labels":{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"vllm"},"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"2026-11-02T09:20:11Z"},"ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"vllm","uid":"0c7f9c1f-55cf-4a7e-8f6a-2b1a4c9b8a10","controller":true,"blockOwnerDeletion":true}],"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"discovery.k8s.io/v1","time":"2026-11-02T09:20:11Z","fieldsType":"FieldsV1","fieldsV1":{"f:addressType":{},"f:endpoints":{},"f:ports":{}}}]},"addressType":%q,"endpoints":[%s],"ports":[%s]}`,
		name, family, strings.Join(endpoints, ","), ports)
}
