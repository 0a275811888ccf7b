package rival

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// charsPerToken is how long a token's text is taken to be, for routers that
// count characters.
const charsPerToken = 4

// figuresEvery is how often llm-d scrapes its pods (GAIE's refresh-metrics-interval).
const figuresEvery = 50 * time.Millisecond

// design is what a router is made of, besides its rule.
type design struct {
	name string
	rule func(*Config) rule
	// keeps makes its belief, nil for none, and counts says how a match is counted in it.
	keeps  func(*Config) retention
	counts counting
	// tracks is how long the units of a request count as used.
	tracks tracking
	// exact makes all gateways share everything at once.
	exact bool
	// scrape is how often engines' figures are read; 0 for never.
	scrape time.Duration
	// reads is how many bytes of a prompt it looks at; 0 for all.
	reads int
}

// counting is what question.match is.
type counting int

const (
	nothing counting = iota
	leading          // believed units without a gap
	counted          // all believed units up to the first nobody has
	deepest          // the place of the last believed one of these
	trunk            // depth and holder instead
	truth            // what the engine has
)

type tracking int

const (
	never     tracking = iota
	untilCome          // the first token
	untilOver
)

var designs = []design{
	{name: "smg", rule: fixed(thresholds{.3, 64, 1.5}), keeps: smgTree(smgCLIChars, 120*time.Second), counts: trunk},
	{name: "smg-library", rule: fixed(thresholds{.5, 32, 1.1}), keeps: smgTree(smgLibraryChars, 30*time.Second), counts: trunk},
	{name: "llm-d", rule: fixed(scorers{3, 2, 2, 0}), keeps: llmdLists, counts: counted, scrape: figuresEvery},
	{name: "llm-d-no-hit-lru", rule: fixed(scorers{3, 2, 2, 2}), keeps: llmdLists, counts: counted, scrape: figuresEvery},
	{name: "llm-d-affinity", rule: fixed(affinity{.8, 286_720, 4 << 20}), keeps: llmdLists, counts: counted},
	{name: "llm-d-precise", rule: fixed(scorers{3, 2, 2, 0}), counts: truth, scrape: figuresEvery},
	{name: "dynamo", rule: fixed(blockCost{1, 1}), keeps: dynamoTree, counts: leading, tracks: untilOver},
	{name: "dynamo-events", rule: fixed(blockCost{1, 1}), counts: truth, tracks: untilOver},
	{name: "aibrix", rule: fixed(deviation{8, 1}), keeps: aibrixTable, counts: deepest},
	{name: "session-hash", rule: fixed(sessionHash{})},
	{name: "bounded-hash-100", rule: func(c *Config) rule { return newRing(len(c.Engines), 256, 1.25) }},
	{name: "least-tokens", rule: fixed(leastTokens{})},
	{name: "oracle", rule: fixed(oracle{4, 128}), counts: truth, tracks: untilCome, exact: true},
}

func fixed(r rule) func(*Config) rule { return func(*Config) rule { return r } }

// Names are the names of all rivals.
func Names() []string { return namesOf(designs) }

// Published are the names of routers as they were set up when the figures were
// taken that their makers published. They are no rivals: later ones of the same
// make are.
func Published() []string { return namesOf(setups) }

func namesOf(list []design) []string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.name
	}
	return names
}

// find returns the design of a name. An oracle may have its factor behind it, as
// in oracle-3.5.
func find(name string) (design, error) {
	base, factor, hasFactor := strings.Cut(name, "oracle-")
	if hasFactor && base == "" {
		f, err := strconv.ParseFloat(factor, 64)
		if err != nil {
			return design{}, fmt.Errorf("rival %q: a number must follow oracle-", name)
		}
		d, err := find("oracle")
		d.rule = fixed(oracle{f, 128})
		return d, err
	}
	for _, d := range slices.Concat(designs, setups) {
		if d.name == name {
			return d, nil
		}
	}
	return design{}, fmt.Errorf("unknown rival %q: use one of %s", name, strings.Join(slices.Concat(Names(), Published()), ", "))
}
