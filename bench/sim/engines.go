package sim

import (
	"maps"
	"slices"

	"kvca/bench/engine"
)

// engines are the backends: state machines that the loop wakes when they have
// something to do.
type engines struct {
	sim     *simulation
	servers []*server
	lastID  uint64
}

// server is one engine. It has one place on the agenda, however much it is asked.
type server struct {
	*engine.Engine
	of       *engines
	number   int
	wake     event
	live     map[uint64]*job
	up       bool // it takes connections
	listed   bool // it is in the gateways' configuration
	emit     func(engine.Event)
	computed int64 // prompt tokens that were not cached
	served   int   // requests whose prompt it has computed
}

func newEngines(s *simulation) *engines {
	e := &engines{sim: s, servers: make([]*server, s.cfg.Backends)}
	for i := range e.servers {
		v := &server{of: e, number: i, live: make(map[uint64]*job), up: true, listed: true, Engine: engine.New(s.cfg.profileOf(i))}
		v.wake = event{place: absent, do: v.advance}
		v.emit = v.hear
		e.servers[i] = v
	}
	return e
}

// submit is a request at the engine's door.
func (e *engines) submit(backend int, j *job) {
	v := e.servers[backend]
	if !v.up {
		e.sim.refused(j)
		return
	}
	e.lastID++
	j.id = e.lastID
	v.live[j.id] = j
	r := j.request
	v.Advance(e.sim.loop.now, v.emit)
	v.Submit(e.sim.loop.now, engine.Request{
		ID: j.id, Blocks: r.Names, OutputBlocks: r.Answer, PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens,
	})
	v.arm()
}

// cancel withdraws a request, wherever it is.
func (e *engines) cancel(j *job) {
	if j.backend == nobody {
		return
	}
	v := e.servers[j.backend]
	if v.live[j.id] != j {
		return
	}
	delete(v.live, j.id)
	v.Advance(e.sim.loop.now, v.emit)
	v.Cancel(j.id)
	v.arm()
}

// stop breaks an engine's requests off and returns them, in the order in which they came.
func (e *engines) stop(backend int) []*job {
	v := e.servers[backend]
	var broken []*job
	for _, id := range slices.Sorted(maps.Keys(v.live)) {
		broken = append(broken, v.live[id])
	}
	clear(v.live)
	v.up, v.Engine = false, engine.New(e.sim.cfg.profileOf(backend))
	if e.sim.events != nil {
		e.sim.events.restarted(backend)
	}
	v.arm()
	return broken
}

// start lets a stopped engine take connections again; stop has left it empty.
func (e *engines) start(backend int) { e.servers[backend].up = true }

// advance takes the steps that are over by now.
func (v *server) advance() {
	v.Advance(v.of.sim.loop.now, v.emit)
	v.arm()
}

// arm sets the engine's place on the agenda to when it will next have something to do.
func (v *server) arm() {
	if t, busy := v.Next(); busy {
		v.of.sim.loop.move(&v.wake, t)
		return
	}
	v.of.sim.loop.drop(&v.wake)
}

func (v *server) hear(ev engine.Event) {
	j := v.live[ev.ID]
	if j == nil {
		return // withdrawn
	}
	switch ev.Kind {
	case engine.FirstToken:
		v.computed += int64(j.request.PromptTokens - ev.CachedTokens)
		v.served++
		v.of.sim.firstToken(j, ev.CachedTokens)
	case engine.Done:
		delete(v.live, ev.ID)
		v.of.sim.done(j)
	case engine.Rejected:
		delete(v.live, ev.ID)
		v.of.sim.rejected(j)
	}
}

// active is how many requests the engine has, running and waiting.
func (v *server) active() int { return v.Running() + v.Waiting() }
