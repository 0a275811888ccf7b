package rival

import (
	"math"
	"time"
)

// deviation is AIBrix's prefix-cache: the fewest requests where load is uneven,
// else the best match among pods whose requests are not more than the mean and a
// standard deviation, and the fewest requests of equals; else the fewest requests.
//
// Source: vllm-project/aibrix, pkg/plugins/gateway/algorithms/prefix_cache.go
// (uneven above 8; later versions also want most > 2 (mean + 1) and match among
// the least busy) and pkg/utils/prefixcacheindexer/hash.go.
type deviation struct {
	uneven int // most - least, to be exceeded
	sigmas float64
}

// AIBrix keeps 200,000 blocks for all pods together, 20 minutes from the last
// use. The documented block is 128 characters; that of the code (4) would leave
// less than half of one engine's cache for all.
const (
	aibrixBlocks     = 200_000
	aibrixBlockChars = 128
	aibrixTTL        = 20 * time.Minute
)

func aibrixTable(c *Config) retention {
	return retention{
		units: max(1, aibrixBlocks*aibrixBlockChars/charsPerToken/c.UnitTokens), common: true,
		ttl: aibrixTTL,
	}
}

func (d deviation) choose(q *question) int {
	if least, most := q.spread(); most-least > d.uneven {
		return q.leastRequests()
	}
	bound := q.requestBound(d.sigmas)
	best := q.cheapest(func(b int) float64 {
		if requests := float64(q.loads[b].requests); q.match[b] > 0 && requests <= bound {
			return requests/math.MaxInt32 - float64(q.percent(b))
		}
		return math.Inf(1)
	})
	if q.match[best] == 0 || float64(q.loads[best].requests) > bound {
		return q.leastRequests()
	}
	return best
}

// percent is the match in whole per cents of the prompt's units.
func (q *question) percent(b int) int { return q.match[b] * 100 / len(q.request.Names) }

// requestBound is the mean number of requests and so many standard deviations.
func (q *question) requestBound(sigmas float64) float64 {
	n, sum, squares := float64(len(q.live)), 0.0, 0.0
	for _, b := range q.live {
		sum += float64(q.loads[b].requests)
	}
	for _, b := range q.live {
		d := float64(q.loads[b].requests) - sum/n
		squares += d * d
	}
	return sum/n + sigmas*math.Sqrt(squares/n)
}
