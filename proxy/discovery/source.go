package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"kvca/proxy/backend"
)

const (
	// maxFound bounds the backends of one source.
	maxFound     = 4096
	maxSpecBytes = 4 << 10
)

// Source finds backends in one place.
type Source interface {
	// String is its spec, and its label in metrics.
	String() string
	// Run asks until ctx ends, and calls found with the whole set, at first and
	// whenever it has changed. It logs and counts what fails; the last set stays.
	Run(ctx context.Context, found func([]backend.Config))
}

// Resolver is what sources need of DNS; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// Options are what sources have in common.
type Options struct {
	// Resolver asks DNS. Default net.DefaultResolver.
	Resolver Resolver
	// Kubernetes says where the API is. Default: as in a pod.
	Kubernetes Kubernetes
	// Logger gets one line per event an operator would act on. Default: none.
	Logger *slog.Logger
}

// kinds are the sources by the scheme of their spec. rest is what stands between
// the scheme and the query.
var kinds = map[string]func(spec, rest string, q *query, o Options) (Source, error){
	"file": newFile,
	"dns":  newDNS,
	"srv":  newSRV,
	"k8s":  newKubernetes,
}

const wantSpec = "want file:PATH, dns://NAME:PORT, srv://NAME or k8s://[NAMESPACE/]SERVICE[:PORT]"

// Parse makes the source that a spec names. It asks nobody yet. The specs are
//
//	file:PATH                             a list of backends, followed as it changes
//	dns://NAME:PORT                       the addresses of a name
//	srv://NAME                            the targets of a name's SRV records
//	k8s://[NAMESPACE/]SERVICE[:PORT]      the endpoints of a service
//
// and all but the first take ?KEY=VALUE&... for what their backends have in common.
func Parse(spec string, o Options) (Source, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if len(spec) > maxSpecBytes {
		return nil, fmt.Errorf("discover: a spec of %d bytes: want at most %d", len(spec), maxSpecBytes)
	}
	scheme, rest, found := strings.Cut(spec, ":")
	kind := kinds[scheme]
	if !found || kind == nil {
		return nil, fmt.Errorf("discover: %q names no known source: %s", spec, wantSpec)
	}
	if scheme != "file" {
		if rest, found = strings.CutPrefix(rest, "//"); !found {
			return nil, fmt.Errorf("discover: %q: want %s://", spec, scheme)
		}
	}
	rest, raw, _ := strings.Cut(rest, "?")
	q, err := readQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("discover: %q: %w", spec, err)
	}
	s, err := kind(spec, rest, q, o)
	if err != nil {
		return nil, fmt.Errorf("discover: %q: %w", spec, err)
	}
	return s, nil
}
