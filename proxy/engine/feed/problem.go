package feed

import (
	"fmt"
	"time"
)

// problem says what keeps the feed from knowing all, for an operator; empty if
// nothing does.
func (m *machine) problem() string {
	switch {
	case m.mode == connecting && m.dropped:
		return m.problemDown()
	case m.silence.silent:
		return fmt.Sprintf("requests flow and no event came at %s for %s: the engine publishes nothing there; "+
			"is prefix caching on, enable_kv_cache_events true and publisher zmq in --kv-events-config, and topic the same as here (%q)?",
			m.config.Endpoint, m.config.SilentAfter, m.config.Topic)
	case m.stale && m.replay.err != nil:
		return fmt.Sprintf("the replay socket %s failed %d times in a row (%v), so blocks stored before are unknown: "+
			"is it the engine's replay_endpoint, and may this host connect to it?", m.config.Replay, m.replay.vain, m.replay.err)
	case m.mode == replaying && m.recovery.took >= longAfter:
		return m.problemLong()
	}
	return m.doubt
}

func (m *machine) problemDown() string {
	cause := ""
	if m.downErr != nil {
		cause = fmt.Sprintf(" (%v)", m.downErr)
	}
	if m.config.Bind {
		return fmt.Sprintf("no engine has connected to %s%s: an engine connects where its endpoint has neither * nor ::, "+
			"so is its endpoint this address, and may it reach this host?", m.config.Endpoint, cause)
	}
	return fmt.Sprintf("no event socket at %s%s: is the engine up, and does it bind there? "+
		"It binds only where its endpoint has * or :: (tcp://*:5557); one with an address makes it connect, then use bind: here",
		m.config.Endpoint, cause)
}

func (m *machine) problemLong() string {
	cause := ""
	if m.replay.err != nil {
		cause = fmt.Sprintf(" (%v)", m.replay.err)
	}
	return fmt.Sprintf("the replay from %s has gone on for %s and brought %d batches without an end%s: "+
		"is it the engine's replay_endpoint, and does the engine publish faster than this host reads?",
		m.config.Replay, m.recovery.took.Truncate(time.Second), m.recovery.batches, cause)
}

func (m *machine) doubtLate(seq uint64) string {
	switch {
	case seq == 0:
		return ""
	case m.canReplay():
		return fmt.Sprintf("the engine's replay ring began at batch %d, expected 0: what was cached before is unknown until it is stored again; "+
			"a larger buffer_steps in --kv-events-config keeps more", seq)
	}
	return fmt.Sprintf("events began at batch %d, expected 0, and there is no replay socket to ask: what was cached before is unknown until "+
		"it is stored again; set replay_endpoint in --kv-events-config, and here", seq)
}

func (m *machine) doubtGap(expected, came uint64) string {
	missing := fmt.Sprintf("batch %d came, expected %d: those between are lost, and what was known with them", came, expected)
	if m.canReplay() {
		return missing + "; the replay socket did not have them: a larger hwm and buffer_steps in --kv-events-config lose less"
	}
	return missing + "; with replay_endpoint in --kv-events-config, set here too, they could be asked for"
}

func (m *machine) doubtBack(seq uint64) string {
	return fmt.Sprintf("batch %d came after later ones on one connection, so all is forgotten: "+
		"do two engines publish to this endpoint? Each needs its own", seq)
}

func (m *machine) doubtDamaged(seq uint64, why error) string {
	return fmt.Sprintf("batch %d could not be read, so what was known is forgotten (%v): expected vLLM's or SGLang's KV events; "+
		"does this endpoint belong to another program, or to a later version of the engine?", seq, why)
}
