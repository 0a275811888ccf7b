package member

import (
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	maxInbox = 1024 // messages that wait to be merged
	maxQueue = 4096 // facts that wait to be told
)

// broadcast is one fact in memberlist's queue; a newer one of its name replaces it.
type broadcast struct {
	name string
	body []byte
}

var _ memberlist.NamedBroadcast = broadcast{}

func (b broadcast) Name() string                          { return b.name }
func (b broadcast) Message() []byte                       { return b.body }
func (b broadcast) Finished()                             {}
func (b broadcast) Invalidates(memberlist.Broadcast) bool { return false } // names decide

// Tell makes f known to everyone: here at once, without OnFact, and by gossip to the
// live. A fact that loses against what is known is not told. Origin is this node's name if empty.
func (m *Members) Tell(f Fact) {
	if f.Origin == "" {
		f.Origin = m.config.Name
	}
	if f.sane() != nil {
		m.metrics.dropped.WithLabelValues(dropMalformed).Inc()
		return
	}
	if m.merge(f) {
		m.pass(f)
	}
}

// Facts are all facts known, for a full sync over the link.
func (m *Members) Facts() []Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.table.All()
}

// Learn takes a peer's facts that came over the link. What is news goes to OnFact, from
// Run's goroutine, and not to gossip: the sync of each pair of nodes carries it on.
func (m *Members) Learn(facts []Fact) {
	for _, f := range facts {
		if f.sane() != nil {
			m.metrics.dropped.WithLabelValues(dropMalformed).Inc()
			continue
		}
		if m.merge(f) {
			m.mu.Lock()
			m.learned[factKey{f.Kind, f.Subject}] = struct{}{}
			m.mu.Unlock()
		}
	}
	m.signal(m.wake)
}

// merge takes f into the table and tells whether that changed it.
func (m *Members) merge(f Fact) bool {
	m.mu.Lock()
	verdict := m.table.Merge(f)
	departed := verdict == Changed && f.Kind == departure && m.roster.departed(f.Subject, f.Value)
	m.mu.Unlock()
	if departed {
		m.later(func() {
			delete(m.ends, f.Subject)
			m.log.Info("member left", "node", f.Subject, "boot", f.Value)
		})
	}
	if verdict == Full {
		m.metrics.dropped.WithLabelValues(dropTable).Inc()
	}
	return verdict == Changed
}

// pass queues f for gossip.
func (m *Members) pass(f Fact) {
	body, err := AppendFact(nil, &f)
	if err != nil {
		return // sane was asked before
	}
	if m.queue.NumQueued() >= maxQueue {
		m.queue.Prune(maxQueue - 1)
		m.metrics.dropped.WithLabelValues(dropQueue).Inc()
	}
	m.queue.QueueBroadcast(broadcast{string(rune(f.Kind)) + f.Subject, body})
	m.metrics.sent.Inc()
}

// receive merges a message; news is passed on once, since memberlist does not.
func (m *Members) receive(b []byte) {
	f, err := ParseFact(b)
	if err != nil {
		m.metrics.dropped.WithLabelValues(dropMalformed).Inc()
		return
	}
	m.metrics.received.Inc()
	if m.merge(f) {
		m.pass(f)
		m.deliverFact(f)
	}
}

func (m *Members) deliverFact(f Fact) {
	if f.Kind != departure {
		m.config.OnFact(f)
	}
}

// takeLearned gives the facts that Learn brought since the last call, as they are now.
func (m *Members) takeLearned() []Fact {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := make([]Fact, 0, len(m.learned))
	for key := range m.learned {
		f, _ := m.table.Get(key.kind, key.subject)
		news = append(news, f)
	}
	clear(m.learned)
	return news
}

// farewell is the fact that this node leaves. Its version is the time, so that it wins
// over an earlier boot's.
func (m *Members) farewell() Fact {
	return Fact{
		Kind: departure, Subject: m.config.Name, Origin: m.config.Name,
		Version: uint64(time.Now().UnixNano()), Value: m.config.Meta.Boot,
	}
}
