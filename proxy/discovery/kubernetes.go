package discovery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"kvca/proxy/backend"
)

const (
	// relistEvery is how long a list is followed by watching: what a watch has missed
	// is found then.
	relistEvery  = 10 * time.Minute
	backoffFirst = time.Second
	backoffMost  = 30 * time.Second
	// briefWatch is so short that a watch which ends by itself is a failure.
	briefWatch = time.Second
	maxSlices  = 1000
)

// kubeSource follows the endpoints of one service. Its fields are its goroutine's.
type kubeSource struct {
	progress
	teller
	shape
	api                api
	namespace, service string
	port               portChoice

	slices  map[string]*endpointSlice
	version string // resourceVersion that a watch goes on from; "" for none
	listed  time.Time
	backoff time.Duration
}

func newKubernetes(spec, rest string, q *query, o Options) (Source, error) {
	s := &kubeSource{progress: newProgress(spec, o), api: api{Kubernetes: o.Kubernetes.withDefaults()}}
	s.shape = q.takeShape("")
	service := rest
	if namespace, name, found := strings.Cut(rest, "/"); found {
		if s.namespace, service = namespace, name; !isLabel(namespace) {
			q.faults = append(q.faults, fmt.Errorf("namespace %q: want a name as Kubernetes has them", namespace))
		}
	}
	name, port, colon := strings.Cut(service, ":")
	if s.service = name; !isLabel(name) || colon && port == "" {
		q.faults = append(q.faults, errors.New("want k8s://[NAMESPACE/]SERVICE[:PORT]"))
	}
	var err error
	s.port, err = readPortChoice(port)
	return s, errors.Join(err, q.end())
}

// Run lists and watches until ctx ends.
func (s *kubeSource) Run(ctx context.Context, found func([]backend.Config)) {
	defer s.api.close()
	for ctx.Err() == nil {
		err := s.step(ctx, found)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if errors.Is(err, errGone) {
			s.version = "" // its versions are forgotten there: no failure
		} else {
			s.failed(err)
		}
		s.wait(ctx)
	}
}

// step lists, or watches from where the last step has ended.
func (s *kubeSource) step(ctx context.Context, found func([]backend.Config)) error {
	if s.version != "" && time.Since(s.listed) < relistEvery {
		return s.watch(ctx, found)
	}
	return s.list(ctx, found)
}

// wait is the time until the API is asked again, twice as long each time.
func (s *kubeSource) wait(ctx context.Context) {
	s.backoff = min(max(2*s.backoff, backoffFirst), backoffMost)
	pause(ctx, time.Duration((0.5+0.5*rand.Float64())*float64(s.backoff)))
}

func (s *kubeSource) list(ctx context.Context, found func([]backend.Config)) error {
	if s.namespace == "" {
		namespace, err := s.api.namespace()
		if err != nil {
			return err
		}
		s.namespace = namespace
	}
	all, version, err := s.api.list(ctx, s.namespace, s.service)
	if err != nil {
		return err
	}
	s.slices, s.version, s.listed = all, version, time.Now()
	s.changed(found)
	return nil
}

func (s *kubeSource) watch(ctx context.Context, found func([]backend.Config)) error {
	began, heard := time.Now(), false
	err := s.api.watch(ctx, s.namespace, s.service, s.version, func(e *event) error {
		if err := s.take(e); err != nil {
			return err
		}
		s.backoff, heard = 0, true
		s.changed(found)
		return nil
	})
	if err == nil && !heard && time.Since(began) < briefWatch {
		return errors.New("the watch ended as soon as it had begun")
	}
	if err == nil {
		s.backoff = 0
		s.ok()
	}
	return err
}

// take enters one event of a watch.
func (s *kubeSource) take(e *event) error {
	switch e.Type {
	case "BOOKMARK":
	case "ADDED", "MODIFIED":
		if s.slices[e.slice.Metadata.Name] == nil && len(s.slices) >= maxSlices {
			return fmt.Errorf("service %s has more than %d slices", s.service, maxSlices)
		}
		s.slices[e.slice.Metadata.Name] = &e.slice
	case "DELETED":
		delete(s.slices, e.slice.Metadata.Name)
	default:
		return fmt.Errorf("the watch sent an event %.20q: want ADDED, MODIFIED, DELETED or BOOKMARK", e.Type)
	}
	if e.slice.Metadata.ResourceVersion != "" {
		s.version = e.slice.Metadata.ResourceVersion
	}
	return nil
}

func (s *kubeSource) changed(found func([]backend.Config)) {
	list, odd := backendsOf(s.slices, s.port, s.shape)
	s.ok()
	s.note(odd)
	s.tell(&s.progress, list, found)
}
