package rival

// question is all that a rule may know when it chooses. What a rule has no use
// for is not filled in.
type question struct {
	request *Request
	unit    int   // tokens of a unit
	live    []int // backends to choose from, ascending; at least one
	down    []bool
	// match is how many units at the beginning each backend is believed to have,
	// in the way that the rule's router counts.
	match []int
	// depth units at the beginning somebody has, and holder made the last of
	// them; none for no unit.
	depth, holder int
	// busy is how many units at the beginning requests at each backend use.
	busy []int
	// loads are in the gateway's books, figures the engines' own as of the last scrape.
	loads   []load
	figures []figure
	// cold is when each backend last got a request that nobody had a unit of, as
	// a growing number; 0 for never.
	cold []uint64
	rand func() uint64
}

// figure is what an engine exports.
type figure struct {
	waiting int
	usage   float64
}

// rule chooses a backend among q.live.
type rule interface{ choose(q *question) int }

// cheapest returns the live backend of the lowest cost, a random one of equals.
func (q *question) cheapest(cost func(backend int) float64) int {
	best, equals, lowest := none, uint64(0), 0.0
	for _, b := range q.live {
		switch c := cost(b); {
		case best == none || c < lowest:
			best, equals, lowest = b, 1, c
		case c == lowest:
			if equals++; q.rand()%equals == 0 {
				best = b
			}
		}
	}
	return best
}

// leastRequests returns a live backend of the fewest requests.
func (q *question) leastRequests() int {
	return q.cheapest(func(b int) float64 { return float64(q.loads[b].requests) })
}

// spread returns the fewest and the most requests at a live backend.
func (q *question) spread() (least, most int) {
	least = q.loads[q.live[0]].requests
	for _, b := range q.live {
		least, most = min(least, q.loads[b].requests), max(most, q.loads[b].requests)
	}
	return least, most
}

// anyMatch is whether somebody has a unit of the prompt.
func (q *question) anyMatch() bool {
	for _, b := range q.live {
		if q.match[b] > 0 {
			return true
		}
	}
	return false
}

// unmatched is how many tokens of the prompt a backend is not believed to have.
func (q *question) unmatched(b int) int {
	return max(0, q.request.PromptTokens-q.match[b]*q.unit)
}

// mix spreads the bits of a number (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
