// Package sim plays a trace against gateways and engines in virtual time: hours in
// seconds, always the same for the same seed.
//
// # What is real in it
//
// The decisions. The product's router, ledger, block map and cluster run as they
// do in `kvca serve`, with a clock and a source of randomness that are the
// simulation's (Router.Config.Now and Rand, cluster.Stepped); rivals run the
// rules of bench/rival. Engines are those of bench/engine. What is left out are HTTP and
// the reading of bodies: the names of a trace stand for the hashes of a prompt.
//
// # How it runs
//
// There is one goroutine and one agenda (loop): a heap of what is to happen, by time
// and then by the order of entry. No map's order, no clock and no scheduler
// decides anything; each kind of chance has a seeded source of its own. Code of
// the product that waits for another node is a coroutine that the loop resumes
// (tasks).
//
//	clients   hold the sessions, in an open or a closed loop; each request goes to
//	          a random node of those that are up
//	gateway   the system under test behind one interface: product (one node),
//	          many (a cluster), rivals
//	engines   one state machine each, with one place on the agenda
//	job       one request between them, one file that shows its whole way
//	disturb   what is killed, restarted, removed and added on the way
//	figures   what is counted, result what is made of it
//
// Between a client and a node, and between a node and an engine, lies a hop of
// half a millisecond either way. So a gateway learns of a first token one
// hop after it came, and its client two. A time to the first token is from
// the arrival at a gateway to the client's sight of it.
//
// # What a trace becomes
//
// Engines cache the trace's units, by their names. The product's router sees blocks
// of its configured size instead: a unit is 512 bytes of its canonical bytes, so
// a block is some units, or a part of one (chains). Messages' ends become marks
// where the trace knows them.
//
// # What fails, and how
//
// An engine that is restarted breaks its connections. What had no first token
// yet is tried on another backend, as the product's proxy does, up to three in
// all; a stream that breaks fails. A client whose node is killed sends its request again to
// another, unless it has seen a part of the answer; without any node it looks for
// one for a minute. Whatever becomes of a request, those that wait for it are
// sent: a session is never left in the midst.
package sim
