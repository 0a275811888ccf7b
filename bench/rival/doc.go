// Package rival is other routers' decision rules, written from their published
// formulas, as opponents in the virtual-time simulator. It has no line of theirs,
// and none of our own router's.
//
// A fleet is the gateways of one router. Of each gateway it keeps
//
//	belief   what it takes to be in the engines' caches (belief.go), learned as it routes, as all of these do
//	active   which units the requests at each backend use (active.go)
//	books    the loads that it has booked itself, and been told of (books.go)
//
// and the engines' figures as of the last scrape. From these it makes a question
// (question.go), which a rule answers with a backend: rules keep nothing.
//
//	name               rule                                                                         constants
//	smg                uneven load: fewest requests; else who has the beginning, if more than a     .3, 64, 1.5; tree of 67,108,864 characters
//	                   share of the prompt; else fewest requests                                    a worker, trimmed each 120 s
//	smg-library        the same                                                                     .5, 32, 1.1; 10,000 characters, 30 s
//	llm-d              3 prefix + 2 queue + 2 (1 - KV usage), scraped                               31,250 x 64 tokens a pod; 50 ms
//	llm-d-no-hit-lru   and + 2 (who had a cold request the longest ago)                             the same
//	llm-d-affinity     fewest uncached tokens in flight, among who has 80 % of the prompt                   286,720 tokens more break it
//	llm-d-precise      as llm-d, prefix by the engines' events                                      no delay of events
//	dynamo             blocks to prefill + blocks in use                                            overlap credit 1, temperature 0, TTL 120 s
//	dynamo-events      the same by the engines' events                                              no delay of events
//	aibrix             uneven load: fewest requests; else best match within mean + sigma            8, 1 sigma; 200,000 x 128 characters, 20 min
//	session-hash       rendezvous hash of the session                                               none
//	bounded-hash-100   KubeAI: ring by the first 100 characters, bounded load                       1.25, 256 replicas
//	least-tokens       fewest prompt tokens not yet answered                                        none
//	oracle             load + 4 novel, by the engines' true caches and all gateways' exact loads    128 tokens a request; oracle-F has factor F
//
// The sources are named at each rule. SMG's library default is no good deployment:
// 10,000 characters are 2,500 tokens of a worker's cache. The oracle is no product: it bounds what a
// router could reach by what it knows, for this form of cost.
//
// Smaller blocks than the simulator's unit are taken as units, at equal tokens
// kept. A router whose list has no order in the source (a hash map) decides among
// equals by lot.
package rival
