package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"kvca/bench/engine"
	"kvca/proxy"
	"kvca/proxy/backend"
	"kvca/router"
	"kvca/state/blockmap"
	"kvca/state/cbr"
	"kvca/state/chain"
)

// settings are all that a node is made from: the configurations of its parts,
// and what belongs to none of them. Options write into it.
type settings struct {
	listen, admin string
	router        router.Config
	proxy         proxy.Config
	pool          backend.PoolConfig
	blocks        blockmap.Config
	backends      []backend.Config
	cluster       clusterSettings
	index         indexSettings
	front         frontSettings
	watch         watchSettings

	// hashKey is the key that a file gave, nil to derive it from the cluster's
	// name.
	hashKey *chain.Key
	// fields are the changes to what stays out of the CBR, by model; those of
	// every model are under "".
	fields map[string]*cbr.Options

	drainDelay, drainTimeout time.Duration
	logLevel                 slog.Level
	logFormat                string

	simulate        int
	simulateProfile engine.Profile
	simulateSpeed   float64
	simulateEvents  bool

	// warnings are what an operator should know and nothing fails for.
	warnings []string

	// given is what counts of each option that has a value, as it was written, by
	// its key.
	given map[string][]string
	// file is the configuration file, "" for none.
	file string
	// again reads everything anew; nil where nothing can have changed.
	again func() (*settings, error)
}

// newSettings are the settings before any option is read: what the parts start
// from, without what options repeat.
func newSettings() *settings {
	s := &settings{router: router.DefaultConfig(), proxy: proxy.DefaultConfig(), fields: make(map[string]*cbr.Options), given: make(map[string][]string)}
	s.proxy.Node = "" // so that it is the host's
	s.router.Policies = make(map[string]string)
	s.proxy.Aliases, s.proxy.Fallbacks = make(map[string]string), make(map[string][]string)
	s.index = indexSettings{
		events: make(map[string]string), hashes: make(map[string]blockHashes), tokenizers: make(map[string]string), loadOnly: make(map[string]bool),
	}
	return s
}

// defaultSettings are those of a node that nothing was configured for.
func defaultSettings() (*settings, error) { return resolve(sources{}) }

// finish fills in what follows from other settings. Its faults are keyed.
func (s *settings) finish() []error {
	s.proxy.Version = buildInfo().Version
	if s.proxy.Node == "" {
		s.proxy.Node = hostName()
	}
	s.proxy.Key = chain.DeriveKey(s.proxy.Cluster)
	if s.hashKey != nil {
		s.proxy.Key = *s.hashKey
	}
	// A client that may pause for long may also take long.
	s.proxy.UploadLimit = max(s.proxy.UploadLimit, s.proxy.UploadIdle)
	faults := s.compileRules()
	for _, err := range []error{s.router.Validate(), s.proxy.Validate(), s.pool.Validate()} {
		faults = append(faults, leaves(err)...)
	}
	faults = append(faults, s.cluster.finish()...)
	faults = append(faults, s.front.finish(s)...)
	faults = append(faults, s.index.finish(s.backends)...)
	if s.simulateEvents && s.simulate == 0 {
		faults = append(faults, errors.New("simulate_events: there is no simulated backend to publish any: want --simulate too"))
	}
	if s.cluster.open() {
		s.warnOfOpenPorts()
	}
	return faults
}

// warnOfOpenPorts tells what is in the clear towards the network.
func (s *settings) warnOfOpenPorts() {
	switch c := &s.cluster; {
	case c.secretFile != "":
	case c.certFile != "":
		s.warn("gossip is neither encrypted nor authenticated: whoever reaches %s can pose as a node; set --cluster-secret-file", c.gossip)
	default:
		s.warn("the cluster's ports are neither encrypted nor authenticated: whoever reaches %s and %s can pose as a node; set --cluster-secret-file", c.gossip, c.link)
	}
}

func (s *settings) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil || checkName(name) != nil {
		return "kvca"
	}
	return name
}
