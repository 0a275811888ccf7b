package kvindex

import (
	"fmt"
	"strings"
)

// Tier is where an engine keeps a block.
type Tier uint8

// The tiers, the fastest first.
const (
	GPU Tier = iota
	CPU
	SSD
	Remote

	// Tiers is how many there are.
	Tiers = 4
)

var tierNames = [Tiers]string{"gpu", "cpu", "ssd", "remote"}

// String is the name used in status and metrics.
func (t Tier) String() string {
	if t < Tiers {
		return tierNames[t]
	}
	return fmt.Sprintf("tier %d", uint8(t))
}

// mediums are the names that engines give their tiers, in lower case: vLLM's up to
// 0.32, SGLang's, and those of connectors. What has no name is the GPU: engines
// that name no medium have one only.
var mediums = map[string]Tier{
	"": GPU, "gpu": GPU, "hbm": GPU, "device": GPU,
	"cpu": CPU, "cpu_pinned": CPU, "host": CPU,
	"disk": SSD, "storage": SSD, "ssd": SSD, "fs": SSD,
	"obj": Remote, "external": Remote, "remote": Remote,
}

// TierOf is the tier of an engine's medium, by its name in any case. A name that
// nobody has heard of is Remote and not known: it counts least.
func TierOf(medium string) (t Tier, known bool) {
	t, known = mediums[strings.ToLower(medium)]
	if !known {
		t = Remote
	}
	return t, known
}
