package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"kvca/cluster/agent"
	"kvca/cluster/link"
	"kvca/cluster/secret"
	"kvca/proxy/engine/readers"
	"kvca/state/kvindex"
)

// agentSettings are what `kvca agent` can be told.
type agentSettings struct {
	nodes      []string
	name       string
	tokenFile  string
	events     indexSettings     // where the events of each backend are
	engines    map[string]string // base URLs, for those whose events are asked for
	ranks      int
	maxBytes   int64
	secretFile string

	certFile, keyFile, caFile string

	backend string   // that the command is
	command []string // the engine to start, nil for none
	grace   time.Duration
}

func agentCommand() *cli.Command {
	return &cli.Command{
		Name:      "agent",
		Usage:     "tell a gateway what the engines of this host hold in their caches",
		ArgsUsage: "[-- COMMAND [ARGUMENT...]]",
		Description: "Reads the KV cache events of engines beside it and streams what they hold to one node of the gateway, the next one\n" +
			"where that fails; nodes tell each other. For engines whose event sockets the nodes can't reach, or should not.\n\n" +
			"After -- stands an engine to start and keep running, as vllm serve ...: the agent gives it free loopback ports for its\n" +
			"events, adds --kv-events-config, and for vLLM also --enable-prefix-caching, --prefix-caching-hash-algo and PYTHONHASHSEED,\n" +
			"where they are not given. --backend then is its id at the gateway. The engine ends with the agent, on Linux also where\n" +
			"the agent is killed.\n\n" +
			"The token is proved, never sent. The nodes have it in their --agents-file, with the backends that the agent may describe.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "node", Usage: "`HOST:PORT` that a node's --link is; repeatable", EnvVars: []string{"KVCA_NODE"}},
			&cli.StringFlag{Name: "name", Usage: "the agent's `NAME` in the nodes' --agents-file", DefaultText: "the host's name", EnvVars: []string{"KVCA_NAME"}},
			&cli.StringFlag{Name: "token-file", Usage: "`FILE` with the agent's token", EnvVars: []string{"KVCA_TOKEN_FILE"}},
			&cli.StringSliceFlag{Name: "events", Usage: "`ID=ENDPOINT[,REPLAY]` of a backend, as in kvca serve; repeatable", EnvVars: []string{"KVCA_EVENTS"}},
			&cli.StringSliceFlag{Name: "engine", Usage: "`ID=URL` of a backend's engine, which is asked where --events has ID=auto; repeatable", EnvVars: []string{"KVCA_ENGINE"}},
			&cli.StringFlag{Name: "backend", Usage: "`ID` of the engine that the command starts", EnvVars: []string{"KVCA_BACKEND"}},
			&cli.StringFlag{Name: "ranks", Usage: "`N` data-parallel ranks of each backend", Value: "1"},
			&cli.StringFlag{Name: "max-bytes", Usage: "bound of `SIZE` on the memory of all that engines hold, about 300 bytes a block", Value: "512MiB"},
			&cli.StringFlag{Name: "cluster-secret-file", Usage: "`FILE` with the cluster's secret, for TLS with its nodes", EnvVars: []string{"KVCA_CLUSTER_SECRET_FILE"}},
			&cli.StringFlag{Name: "cluster-cert", Usage: "certificate `FILE` for TLS with the nodes, in place of the secret"},
			&cli.StringFlag{Name: "cluster-key", Usage: "its key `FILE`"},
			&cli.StringFlag{Name: "cluster-ca", Usage: "`FILE` with what the nodes' certificates are signed by"},
			&cli.StringFlag{Name: "grace", Usage: "`DURATION` that the started engine has to end", Value: "1m"},
			&cli.StringFlag{Name: "log-level", Usage: "least `LEVEL` that is logged: debug, info, warn or error", Value: "info"},
			&cli.StringFlag{Name: "log-format", Usage: "`FORMAT` of the log: text or json", Value: "text"},
		},
		Action: func(c *cli.Context) error {
			s, log, err := readAgent(c)
			if err != nil {
				return err
			}
			return runAgent(c.Context, s, log, c.App.Writer, c.App.ErrWriter)
		},
	}
}

// readAgent reads the settings. It returns all faults at once.
func readAgent(c *cli.Context) (*agentSettings, *slog.Logger, error) {
	s := &agentSettings{
		nodes: c.StringSlice("node"), name: c.String("name"), tokenFile: c.String("token-file"),
		events: indexSettings{events: make(map[string]string)}, engines: make(map[string]string),
		secretFile: c.String("cluster-secret-file"), certFile: c.String("cluster-cert"), keyFile: c.String("cluster-key"), caFile: c.String("cluster-ca"),
		backend: c.String("backend"), command: c.Args().Slice(),
	}
	if s.name == "" {
		s.name = hostName()
	}
	var wrong faults
	note := func(flag string, err error) {
		if err != nil {
			wrong = append(wrong, fault{origin{place: "--" + flag}, flag, err.Error()})
		}
	}
	settings := newSettings()
	settings.index = s.events
	for _, v := range c.StringSlice("events") {
		note("events", addEvents(settings, v))
	}
	s.events = settings.index
	for _, v := range c.StringSlice("engine") {
		note("engine", s.addEngine(v))
	}
	for flag, set := range s.single() {
		note(flag, set(settings, c.String(flag)))
	}
	for flag, err := range s.check() {
		note(flag, err)
	}
	slices.SortStableFunc(wrong, func(a, b fault) int { return strings.Compare(a.place, b.place) })
	return s, newLogger(c.App.ErrWriter, settings.logFormat, settings.logLevel), wrong.err()
}

// single reads the flags with one value that is no text, by their names. How to log
// goes into the settings that a node has for it.
func (s *agentSettings) single() map[string]setter {
	set := map[string]setter{
		"max-bytes": sizeBetween(func(*settings) *int64 { return &s.maxBytes }, 1<<20, 1<<40),
		"ranks":     number(readCount, func(*settings) *int { return &s.ranks }, 1, 1024),
		"grace":     durationBetween(func(*settings) *time.Duration { return &s.grace }, 0, day),
	}
	for _, o := range lifeOptions() {
		if strings.HasPrefix(o.name, "log-") {
			set[o.name] = o.set
		}
	}
	return set
}

func (s *agentSettings) addEngine(v string) error {
	id, base, found := strings.Cut(v, "=")
	u, err := url.Parse(base)
	if !found || id == "" || err != nil || u.Host == "" {
		return fmt.Errorf("%q: want ID=URL, such as gpu-1=http://127.0.0.1:8000", v)
	}
	s.engines[id] = strings.TrimSuffix(base, "/")
	return nil
}

// check is what is wrong with the settings together, by flag.
func (s *agentSettings) check() map[string]error {
	wrong := make(map[string]error)
	if len(s.nodes) == 0 {
		wrong["node"] = errors.New("none is given: want HOST:PORT that a node's --link is")
	}
	for _, node := range s.nodes {
		if checkPeer(node) != nil {
			wrong["node"] = fmt.Errorf("%q is no address of a node: want HOST:PORT that its --link is, such as gw-1:7947", node)
		}
	}
	if s.tokenFile == "" {
		wrong["token-file"] = errors.New("none is given: want a file with the agent's token")
	}
	switch {
	case len(s.command) > 0 && s.backend == "":
		wrong["backend"] = errors.New("none is given: want the id that the started engine has at the gateway")
	case len(s.command) == 0 && s.backend != "":
		wrong["backend"] = fmt.Errorf("%q: want -- and a command behind it, or --events", s.backend)
	case len(s.command) == 0 && len(s.events.events) == 0:
		wrong["events"] = errors.New("none is given: want ID=ENDPOINT, or an engine to start behind --")
	case len(s.command) > 0 && s.events.events[s.backend] != "":
		wrong["events"] = fmt.Errorf("%s: the agent gives the engine that it starts an endpoint: leave it out", s.backend)
	}
	for id, spec := range s.events.events {
		switch {
		case id == everyBackend:
			wrong["events"] = errors.New("an agent describes the backends that are named: want their ids in place of *")
		case spec == "auto" && s.engines[id] == "":
			wrong["engine"] = fmt.Errorf("none is given for %s: want %s=URL to ask where its events are", id, id)
		}
	}
	return wrong
}

// backends are the ids of all that the agent describes.
func (s *agentSettings) backends() (list []agent.Backend) {
	ids := make([]string, 0, len(s.events.events))
	for id := range s.events.events {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		list = append(list, agent.Backend{ID: id, Ranks: s.ranks})
	}
	return list
}

// runAgent streams until a signal comes, or ctx ends, or the engine that it started
// can't be started at all.
func runAgent(ctx context.Context, s *agentSettings, log *slog.Logger, out, errs io.Writer) error {
	ctx, stop := untilSignal(ctx, log)
	defer stop()
	var started *supervised
	if len(s.command) > 0 {
		var err error
		if started, err = supervise(s, log, out, errs); err != nil {
			return err
		}
		s.events.events[s.backend] = started.events
	}
	a, watch, err := s.open(log)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: askEngine}
	defer client.CloseIdleConnections()
	r := readers.New(readers.Config{
		Fleet:  func() []readers.Backend { return s.fleet(client) },
		Open:   func(backend string, rank int) (readers.Source, error) { return openMirror(a, backend, rank) },
		Logger: log,
	})
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer log.Info("stopped", "agent", s.name)
	defer work.Wait()
	defer end()
	work.Go(func() { r.Run(background) })
	work.Go(func() { _ = a.Run(background) }) // it ends with the context only
	work.Go(func() { watch(background) })
	log.Info("describing", "backends", len(s.events.events), "nodes", strings.Join(s.nodes, ","), "agent", s.name)
	if started == nil {
		<-ctx.Done()
		return nil
	}
	return started.run(ctx)
}

// askEngine bounds a question to an engine.
const askEngine = 5 * time.Second

// open makes the agent, and what watches its files.
func (s *agentSettings) open(log *slog.Logger) (*agent.Agent, func(context.Context), error) {
	text, err := readBounded(s.tokenFile, maxKeyBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("--token-file: %q %w", s.tokenFile, err)
	}
	if othersRead(s.tokenFile) {
		log.Warn("the token's file can be read by others than its owner: chmod 600 " + s.tokenFile)
	}
	var tls link.TLS
	watch := func(context.Context) {}
	switch {
	case s.secretFile != "":
		source, err := secret.Open(s.secretFile, log)
		if err != nil {
			return nil, nil, fmt.Errorf("--cluster-secret-file: %w", err)
		}
		tls, watch = source, func(ctx context.Context) { source.Run(ctx, nil) }
	case s.certFile != "":
		certs, err := secret.Certificates(s.certFile, s.keyFile, s.caFile, log)
		if err != nil {
			return nil, nil, fmt.Errorf("--cluster-cert: %w", err)
		}
		tls, watch = certs, certs.Run
	default:
		log.Warn("the link to the gateway is not encrypted: tokens of prompts can be read on the way; set --cluster-secret-file")
	}
	a, err := agent.New(agent.Config{
		Nodes: s.nodes, Name: s.name, Token: []byte(strings.TrimSpace(string(text))), TLS: tls, Backends: s.backends(), MaxBytes: s.maxBytes, Logger: log,
	})
	return a, watch, err
}

// fleet is what the reader is to read: always the same.
func (s *agentSettings) fleet(client *http.Client) (list []readers.Backend) {
	for id, spec := range s.events.events {
		b := readers.Backend{ID: id, Events: spec, Host: "127.0.0.1"}
		if base := s.engines[id]; base != "" {
			if u, err := url.Parse(base); err == nil {
				b.Host = u.Hostname()
			}
			b.Do = getter(client, base)
		}
		list = append(list, b)
	}
	return list
}

// getter asks an engine for a page.
func getter(client *http.Client, base string) func(ctx context.Context, method, target string) ([]byte, int, error) {
	return func(ctx context.Context, method, target string) ([]byte, int, error) {
		req, err := http.NewRequestWithContext(ctx, method, base+target, http.NoBody)
		if err != nil {
			return nil, 0, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, 0, err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
		return body, resp.StatusCode, err
	}
}

// mirror is an agent's mirror as the reader feeds it.
type mirror struct{ *agent.Mirror }

func openMirror(a *agent.Agent, backend string, rank int) (readers.Source, error) {
	m, err := a.Sink(backend, rank)
	return mirror{m}, err
}

// Stats are the mirror's figures, as far as it has them.
func (m mirror) Stats() kvindex.SourceStats { return kvindex.SourceStats{} }

// Close forgets what was told: the engine is not read any more.
func (m mirror) Close() {
	m.SetLive(false)
	m.Reset()
}

// freePort is a port of the loopback address that nobody has now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
