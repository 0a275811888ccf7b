package sim

// gateway is the system under test as the simulation sees it: all its nodes, be
// they the product's or a rival's. The simulation brings requests to it and tells
// it what comes of them. All calls come from the loop, at its virtual time.
type gateway interface {
	// route chooses a backend for j, which is at node j.node and has failed on
	// j.tried. It calls decided once, in the loop, now or later in virtual time,
	// with the backend's number (nobody where none is left to try) and with what
	// begin and end will find in j.ticket. It leaves j alone: if its node is killed
	// meanwhile, the request goes elsewhere and this decision is not heard.
	route(j *job, decided decided)
	// begin: the first token has come.
	begin(j *job)
	// end: answered whole, failed, or abandoned; after begin or without, and once
	// for each decision.
	end(j *job)

	// lost: connections to the backend break or are refused.
	lost(backend int)
	// back: it answers again, with an empty cache.
	back(backend int)
	// removed: the operator takes it out of the configuration.
	removed(backend int)
	// added: the operator puts it in again, as a new one.
	added(backend int)

	// killed: a node is gone, with all that it knew. The requests on it are ended
	// next, and that they end is nothing it could tell anybody.
	killed(node int)
	// started: it is there again, and takes requests from when it says so.
	started(node int, ready func())

	// report fills in what the gateway alone can know.
	report(r *Result)
	// close ends what still waits; nothing else is called after it.
	close()
}

// decided takes a decision.
type decided func(backend int, ticket any)

// nobody stands for a backend where there is none.
const nobody = -1
