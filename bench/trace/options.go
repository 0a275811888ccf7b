package trace

import (
	"errors"
	"fmt"
	"time"
)

// Options is how Open reads a file. The zero value reads all of it as it was recorded.
type Options struct {
	// Seed spreads what the file has at one and the same time.
	Seed uint64

	// Speed makes times pass so much faster: clients' pauses and the gaps between sessions, not what a fleet takes. From 0.01 to 1e6;
	// 0 is 1.
	Speed float64

	// MaxThink cuts the time for which a client thinks, before Speed. Agent sessions have nights in them, 26 hours at the longest: as
	// recorded, 64 lanes come to one request in three seconds, of which no fleet takes notice; cut to 5 min, to 1.5 a second. 0 leaves
	// what was recorded.
	MaxThink time.Duration

	// Limit is the number of requests at most: whole sessions, from the first on. 0 is all. Less than the first session has is an
	// error.
	Limit int

	// Lanes is how many agent sessions go on side by side. More of them press harder on the caches. 0 is 64. A Mooncake trace has
	// timestamps and no use for it.
	Lanes int

	// MaxTokens leaves out requests whose prompt and answer are longer: an engine with a smaller cache would only refuse them. 0 is
	// 131,072.
	MaxTokens int
}

const (
	defaultLanes     = 64
	defaultMaxTokens = 128 << 10
)

// Validate returns all faults.
func (o Options) Validate() error {
	var faults []error
	if o.Speed != 0 && !(o.Speed >= 0.01 && o.Speed <= 1e6) {
		faults = append(faults, fmt.Errorf("speed %v: want 0.01 to 1e6, or 0 for 1", o.Speed))
	}
	if o.MaxThink < 0 {
		faults = append(faults, fmt.Errorf("max think %v: want more than 0, or 0 for as recorded", o.MaxThink))
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"limit", o.Limit}, {"lanes", o.Lanes}, {"max tokens", o.MaxTokens}} {
		if f.value < 0 {
			faults = append(faults, fmt.Errorf("%s %d: want 0 or more", f.name, f.value))
		}
	}
	return errors.Join(faults...)
}

func (o Options) withDefaults() Options {
	if o.Speed == 0 {
		o.Speed = 1
	}
	if o.MaxThink == 0 || o.MaxThink > maxTime {
		o.MaxThink = maxTime
	}
	if o.Lanes == 0 {
		o.Lanes = defaultLanes
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = defaultMaxTokens
	}
	return o
}
