package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"kvca/bench/engine"
	"kvca/bench/rival"
	"kvca/bench/sim"
	"kvca/bench/trace"
	"kvca/router"
)

// simulateSettings are what `kvca simulate` can be told.
type simulateSettings struct {
	file, workload  string // one of them
	policies        []string
	nodes, backends int
	profile         string
	speed           float64
	seed            uint64
	delay           time.Duration
	sharing         string
	precise         bool
	sessions, limit int // 0 for the trace's own, and for all
	maxThink        time.Duration
}

func simulateCommand() *cli.Command {
	return &cli.Command{
		Name:  "simulate",
		Usage: "play a trace against a gateway and simulated backends, in virtual time",
		Description: "Plays the requests of a trace file or of a generated workload against this gateway's own routing code, or another\n" +
			"router's rule, in front of simulated engines: an hour of traffic takes seconds, and the same seed gives the same\n" +
			"figures. Needs no engine and no GPU.\n\n" +
			"HIT is the share of prompt tokens that engines had cached, FOLLOW-UP HIT the same of later turns, KEPT the share of\n" +
			"later turns that went where the turn before went; TTFT is from the gateway to the client's first token; LOAD COV is\n" +
			"the standard deviation of requests under way over their mean, MAX/MEAN the busiest backend's computed tokens over the\n" +
			"mean; PEER B/S is what one node sends to others; DEGRADED are decisions without the word of a backend's owner.\n\n" +
			"Workloads: tenants, twenty tenants' conversations with a system prompt of 8,000 tokens each; ladder37 and ladder73,\n" +
			"llm-d's cases of shared prefixes that take 37 and 73 % of the caches; burst, 200 questions about one document.\n\n" +
			"Policies: " + strings.Join(sim.Policies(), ", ") + ".",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "trace", Usage: "`FILE` to play, .jsonl or .jsonl.gz: Mooncake requests, or agent sessions"},
			&cli.StringFlag{Name: "workload", Usage: "`WORKLOAD` to generate where there is no file: " + strings.Join(workloadNames(), ", ")},
			&cli.StringSliceFlag{Name: "policy", Usage: "`NAME` of a policy or of another router's rule; repeatable or with commas, one run each", Value: cli.NewStringSlice("cost")},
			&cli.IntFlag{Name: "nodes", Usage: "`N` nodes that route as one", Value: 1},
			&cli.IntFlag{Name: "backends", Usage: "`N` simulated backends", Value: 8},
			&cli.StringFlag{Name: "profile", Usage: "`PROFILE` of the backends: 8b, 32b or 70b", Value: "70b"},
			&cli.Float64Flag{Name: "speed", Usage: "requests come `X` times as fast; a generated workload has as many more of them", Value: 1},
			&cli.Uint64Flag{Name: "seed", Usage: "`SEED` of all that is left to chance", Value: 1},
			&cli.DurationFlag{Name: "delay", Usage: "`DURATION` between two nodes, one way", Value: time.Millisecond},
			&cli.StringFlag{Name: "sharing", Usage: "`WHAT` another router's nodes tell each other: nothing, map or map-and-loads", Value: "nothing"},
			&cli.BoolFlag{Name: "precise", Usage: "engines publish what they hold, and this gateway's policies go by that", DisableDefaultText: true},
			&cli.IntFlag{Name: "sessions", Usage: "`N` agent sessions side by side", DefaultText: "64"},
			&cli.DurationFlag{Name: "max-think", Usage: "`DURATION` that an agent session thinks at most, for recorded ones contain nights; 0 for as recorded"},
			&cli.IntFlag{Name: "limit", Usage: "`N` requests at most, in whole sessions; 0 for all"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object for each run", DisableDefaultText: true},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			s := &simulateSettings{
				file: c.String("trace"), workload: c.String("workload"), policies: c.StringSlice("policy"),
				nodes: c.Int("nodes"), backends: c.Int("backends"), profile: c.String("profile"), speed: c.Float64("speed"),
				seed: c.Uint64("seed"), delay: c.Duration("delay"), sharing: c.String("sharing"), precise: c.Bool("precise"),
				sessions: c.Int("sessions"), maxThink: c.Duration("max-think"), limit: c.Int("limit"),
			}
			if err := s.check(); err != nil {
				return err
			}
			return simulate(c, s)
		},
	}
}

// sharings are what nodes of a rival may tell each other.
var sharings = map[string]rival.Sharing{"nothing": rival.Nothing, "map": rival.Map, "map-and-loads": rival.MapAndLoads}

// Bounds of the simulation's size.
const (
	maxSimulatedSpeed = 1000
	maxSimulatedDelay = 10 * time.Second
	// maxGeneratedSpeed bounds what is generated to some hundreds of MB.
	maxGeneratedSpeed    = 50
	maxSimulatedSessions = 1 << 20
)

// check returns all that is wrong with the settings.
func (s *simulateSettings) check() error {
	var wrong faults
	want := func(ok bool, flag, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fault{origin{place: "--" + flag}, flag, fmt.Sprintf(format, args...)})
		}
	}
	want(s.file != "" || s.workload != "", "trace", "none is given: want a file, or --workload")
	want(s.file == "" || s.workload == "", "workload", "%q: want it or --trace, not both", s.workload)
	want(s.workload == "" || slices.Contains(workloadNames(), s.workload), "workload", "unknown %q: want one of %s", s.workload, strings.Join(workloadNames(), ", "))
	for _, name := range s.policies {
		want(slices.Contains(sim.Policies(), name), "policy", "unknown %q: want one of %s", name, strings.Join(sim.Policies(), ", "))
	}
	for _, name := range s.policies {
		want(!s.precise || slices.Contains(router.PolicyNames(), name), "precise", "%s takes no notice of events: want it with %s only", name, strings.Join(router.PolicyNames(), ", "))
	}
	_, err := engine.ProfileNamed(s.profile)
	_, sharing := sharings[s.sharing]
	want(s.nodes >= 1 && s.nodes <= sim.MaxNodes, "nodes", "%d: want 1 to %d", s.nodes, sim.MaxNodes)
	want(s.backends >= 1 && s.backends <= sim.MaxBackends, "backends", "%d: want 1 to %d", s.backends, sim.MaxBackends)
	want(err == nil, "profile", "%v", err)
	want(s.speed >= 0.01 && s.speed <= maxSimulatedSpeed, "speed", "%v: want 0.01 to %d", s.speed, maxSimulatedSpeed)
	want(s.delay >= 0 && s.delay <= maxSimulatedDelay, "delay", "%v: want 0s to %v", s.delay, maxSimulatedDelay)
	want(sharing, "sharing", "%q: want nothing, map or map-and-loads", s.sharing)
	want(s.sessions >= 0 && s.sessions <= maxSimulatedSessions, "sessions", "%d: want 1 to %d, or 0 for 64", s.sessions, maxSimulatedSessions)
	want(s.maxThink == 0 || s.file != "", "max-think", "%v: a generated workload has its own: want --trace with it, or none", s.maxThink)
	want(s.workload == "" || s.speed <= maxGeneratedSpeed, "speed", "%v: a generated workload grows with it: want at most %d", s.speed, maxGeneratedSpeed)
	want(s.sessions == 0 || s.file != "", "sessions", "%d: a generated workload has a rate: want --trace with it, or none", s.sessions)
	want(s.maxThink >= 0, "max-think", "%v: want 0s or more", s.maxThink)
	want(s.limit >= 0, "limit", "%d: want 1 or more, or 0 for all", s.limit)
	return wrong.err()
}

// open reads or generates the trace.
func (s *simulateSettings) open() (*trace.Trace, error) {
	if s.file != "" {
		return trace.Open(s.file, trace.Options{Seed: s.seed, Speed: s.speed, Limit: s.limit, Lanes: s.sessions, MaxThink: s.maxThink})
	}
	t := generate(s.workload, s.seed, s.speed)
	if err := keepFirst(t, s.limit); err != nil {
		return nil, fmt.Errorf("generate %s: %w", s.workload, err)
	}
	return t, nil
}

// config is one run.
func (s *simulateSettings) config(policy string) (sim.Config, error) {
	profile, err := engine.ProfileNamed(s.profile)
	return sim.Config{
		Policy: policy, Nodes: s.nodes, Backends: s.backends, Profile: profile, Seed: s.seed, Delay: s.delay,
		Sharing: sharings[s.sharing], Precise: s.precise,
	}, err
}

// simulate runs the policies one after the other. JSON comes as they end, the
// table with the last.
func simulate(c *cli.Context, s *simulateSettings) error {
	t, err := s.open() // a signal ends the process, as nothing is to be tidied up yet
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	ctx, stop := untilSignal(c.Context, slog.New(slog.DiscardHandler))
	defer stop()
	var results []*sim.Result
	for _, policy := range s.policies {
		cfg, err := s.config(policy)
		if err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
		r, err := sim.Run(ctx, cfg, t)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("simulate %s: stopped by a signal", policy)
		case err != nil:
			return fmt.Errorf("simulate: %w", err)
		case c.Bool("json"):
			if err := json.NewEncoder(c.App.Writer).Encode(r); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
		}
		results = append(results, r)
	}
	if c.Bool("json") {
		return nil
	}
	return writeResults(c.App.Writer, s, t, results)
}
