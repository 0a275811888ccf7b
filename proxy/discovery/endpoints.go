package discovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"kvca/proxy/backend"
	"kvca/state"
)

// endpointSlice is what is needed of an EndpointSlice of discovery.k8s.io/v1.
type endpointSlice struct {
	Metadata    objectMeta  `json:"metadata"`
	AddressType string      `json:"addressType"`
	Endpoints   []endpoint  `json:"endpoints"`
	Ports       []slicePort `json:"ports"`
}

type objectMeta struct {
	Name            string `json:"name"`
	Namespace       string `json:"namespace"`
	ResourceVersion string `json:"resourceVersion"`
}

type slicePort struct {
	Name *string `json:"name"`
	Port *int32  `json:"port"`
}

type endpoint struct {
	Addresses  []string   `json:"addresses"`
	Conditions conditions `json:"conditions"`
	TargetRef  *objectRef `json:"targetRef"`
	Zone       string     `json:"zone"`
}

// conditions that are missing mean what an endpoint that works would say. The third
// one, serving, is what the pod says even while it terminates: no reason to send it
// more.
type conditions struct {
	Ready       *bool `json:"ready"`
	Terminating *bool `json:"terminating"`
}

type objectRef struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

// usable is whether an endpoint may get new requests. One that terminates may not,
// though it still serves: what it was given would be cut off. A service that
// publishes unready addresses says of all that they are ready.
func (c conditions) usable() bool {
	return (c.Ready == nil || *c.Ready) && (c.Terminating == nil || !*c.Terminating)
}

// portChoice is which of a service's ports engines listen on.
type portChoice struct {
	name   string
	number uint16
}

func readPortChoice(text string) (portChoice, error) {
	if text == "" {
		return portChoice{}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
		return portChoice{number: uint16(n)}, nil
	}
	if !isLabel(text) || len(text) > 15 {
		return portChoice{}, fmt.Errorf("port %q: want a port's name or its number", text)
	}
	return portChoice{name: text}, nil
}

// usualPort is the name that is taken where a service has several ports and none
// was asked for.
const usualPort = "http"

// of is the number of the port in one slice, which has the pods' ports, not the
// service's. A headless service need not name any: then a number counts as it is.
func (p portChoice) of(s *endpointSlice) (uint16, error) {
	if p.number != 0 && len(s.Ports) == 0 {
		return p.number, nil
	}
	known := make([]string, 0, len(s.Ports))
	for i := range s.Ports {
		name, number := s.Ports[i].read()
		if number != 0 && p.picks(name, number, len(s.Ports)) {
			return number, nil
		}
		known = append(known, fmt.Sprintf("%q (%d)", name, number))
	}
	return 0, fmt.Errorf("slice %s has the ports %s: name one of them in the spec", s.Metadata.Name, strings.Join(known, ", "))
}

func (p portChoice) picks(name string, number uint16, of int) bool {
	switch {
	case p.number != 0:
		return number == p.number
	case p.name != "":
		return name == p.name
	}
	return of == 1 || name == usualPort
}

// read gives the port's name, "" for none, and its number, 0 for none.
func (p *slicePort) read() (name string, number uint16) {
	if p.Name != nil {
		name = *p.Name
	}
	if p.Port != nil && *p.Port > 0 && *p.Port <= 65535 {
		number = uint16(*p.Port)
	}
	return name, number
}

// backendsOf turns slices into backends, by ID. An endpoint may stand in two slices
// for a moment, and with two addresses in slices of two families: one that is usable
// counts before one that is not, and IPv4 before IPv6. What can't be used is left
// out and told.
func backendsOf(slicesByName map[string]*endpointSlice, p portChoice, s shape) ([]backend.Config, error) {
	ordered := slices.SortedFunc(maps.Values(slicesByName), func(a, b *endpointSlice) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	byID := make(map[string]backend.Config)
	var faults []error
	for _, one := range ordered {
		faults = append(faults, one.enter(byID, p, s)...)
	}
	list := slices.SortedFunc(maps.Values(byID), func(a, b backend.Config) int { return strings.Compare(a.ID, b.ID) })
	return list, errors.Join(faults[:min(len(faults), maxFaults)]...)
}

// enter adds a slice's endpoints to those of others.
func (es *endpointSlice) enter(byID map[string]backend.Config, p portChoice, s shape) (faults []error) {
	if len(es.Endpoints) == 0 {
		return nil
	}
	port, err := p.of(es)
	if err != nil {
		return []error{err}
	}
	for i := range es.Endpoints {
		c, err := es.Endpoints[i].backend(port, s).Complete()
		if err != nil {
			faults = append(faults, fmt.Errorf("slice %s: %w", es.Metadata.Name, err))
			continue
		}
		if known, twice := byID[c.ID]; !twice || known.Draining && !c.Draining {
			byID[c.ID] = c
		}
	}
	return faults
}

// maxFaults bounds what one warning says.
const maxFaults = 10

// rank puts IPv4 before the other families.
func rank(s *endpointSlice) int {
	if s.AddressType == "IPv4" {
		return 0
	}
	return 1
}

// backend is an endpoint as the pool knows it. Its addresses are all of one engine,
// so the first will do.
func (e *endpoint) backend(port uint16, s shape) backend.Config {
	host := ""
	if len(e.Addresses) > 0 {
		host = e.Addresses[0]
	}
	c := s.at(host, port)
	if pod := e.TargetRef; pod != nil && pod.Kind == "Pod" && pod.Name != "" {
		id := pod.Name + "." + pod.Namespace + ":" + strconv.Itoa(int(port))
		if state.CheckBackendID(id) == nil { // one that is too long has its address
			c.ID = id
		}
		c.Instance = pod.UID
	}
	c.Zone = cmp.Or(e.Zone, c.Zone)
	c.Draining = !e.Conditions.usable()
	if net.ParseIP(host) == nil && !isLabel(host) {
		c.URL = "" // nothing that can be called: a fault
	}
	return c
}

// isLabel reports whether text is a name as Kubernetes has them.
func isLabel(text string) bool {
	ok := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	inner := func(r rune) bool { return ok(r) || r == '-' || r == '.' }
	if text == "" || len(text) > 253 || !ok(rune(text[0])) || !ok(rune(text[len(text)-1])) {
		return false
	}
	return strings.IndexFunc(text, func(r rune) bool { return !inner(r) }) < 0
}
