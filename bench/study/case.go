package study

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"kvca/bench/sim"
	"kvca/router"
)

// Case is one simulation but for the seed.
type Case struct {
	Source Source
	Config sim.Config // its Seed is the runner's
}

// job is a case with a seed: one run.
type job struct {
	Case
	seed uint64
}

// String names a job in messages.
func (j job) String() string {
	c := &j.Config
	return fmt.Sprintf("%s on %s, %s at %.4g, %d nodes, %d backends, seed %d",
		c.Policy, c.Profile.Name, j.Source.Workload, j.Source.Rate, max(c.Nodes, 1), max(c.Backends, 1), j.seed)
}

// fingerprint tells jobs apart by all that decides their result; files are what
// recorded traces are read from. Leaving out a default is the same as naming it.
func (j job) fingerprint(files Files) string {
	c := j.Config
	if c.Router.BlockSize == 0 {
		c.Router = router.DefaultConfig()
	}
	c.Router.Now, c.Router.Rand, c.Router.Registerer = nil, nil, nil // the simulation's own
	c.Router.Policy, c.Router.Policies = "", nil
	c.Seed = j.seed
	c.Nodes, c.Backends = max(c.Nodes, 1), max(c.Backends, 1)
	if c.TTL == 0 {
		c.TTL = defaultTTL
	}
	if c.News == 0 {
		c.News = defaultNews
	}
	text := fmt.Sprintf("%+v\n%+v\n%s", j.Source, c, files.id(j.Source.Workload))
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// What sim.Config and the product take.
const (
	defaultTTL  = 10 * time.Minute
	defaultNews = 5 * time.Millisecond
)

// weight is about how long a job takes, in seconds of one core: what takes long
// is begun first.
func (j job) weight() float64 {
	w, ok := workloads[j.Source.Workload]
	if !ok {
		return 1
	}
	seconds := w.seconds
	if w.requests > 0 && j.Source.Limit > 0 {
		seconds *= min(1, float64(j.Source.Limit)/float64(w.requests))
	}
	if j.Config.Nodes > 1 {
		seconds = 2*seconds + perNode*float64(j.Config.Nodes)
	}
	return seconds
}

// perNode is what stepping a node through a run takes.
const perNode = 0.5
