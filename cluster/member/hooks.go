package member

import (
	"bytes"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

// hooks are memberlist's delegates. Those about nodes are called with memberlist's
// node lock held, from any goroutine, even from Create before New has returned: they
// touch the roster and queues and never call memberlist.
type hooks struct{ m *Members }

var (
	_ memberlist.Delegate         = hooks{}
	_ memberlist.EventDelegate    = hooks{}
	_ memberlist.AliveDelegate    = hooks{}
	_ memberlist.MergeDelegate    = hooks{}
	_ memberlist.ConflictDelegate = hooks{}
	_ memberlist.PingDelegate     = hooks{}
)

// NodeMeta is what others learn of this node.
func (h hooks) NodeMeta(int) []byte { return h.m.meta }

// NotifyMsg takes a fact off the packet goroutine, which reuses the buffer.
func (h hooks) NotifyMsg(b []byte) {
	if len(b) > maxFact {
		h.m.metrics.dropped.WithLabelValues(dropMalformed).Inc()
		return
	}
	select {
	case h.m.inbox <- bytes.Clone(b):
	default:
		h.m.metrics.dropped.WithLabelValues(dropInbox).Inc()
	}
}

// GetBroadcasts gives facts that are still to be told.
func (h hooks) GetBroadcasts(overhead, limit int) [][]byte {
	return h.m.queue.GetBroadcasts(overhead, limit)
}

// LocalState and MergeRemoteState are empty: facts are synchronised over the link.
func (h hooks) LocalState(bool) []byte        { return nil }
func (h hooks) MergeRemoteState([]byte, bool) {}

// NotifyJoin, NotifyUpdate and NotifyLeave keep the roster. Node lock held.
func (h hooks) NotifyJoin(n *memberlist.Node) { h.m.arrived(n, "member joined") }

func (h hooks) NotifyUpdate(n *memberlist.Node) { h.m.arrived(n, "member changed") }

func (h hooks) NotifyLeave(n *memberlist.Node) { h.m.ended(n) }

// NotifyAlive decides about each news of a live node. Node lock held.
func (h hooks) NotifyAlive(n *memberlist.Node) error {
	if n.Name == h.m.config.Name {
		return nil // conflicts of names are NotifyConflict's
	}
	if r := h.m.judge(n); r != nil {
		return r
	}
	h.m.doubt(n.Name, false)
	return nil
}

// NotifyMerge decides whether to join with a node, by all that it holds live; what
// it holds this node's name for is noted. No lock held.
func (h hooks) NotifyMerge(peers []*memberlist.Node) error {
	for _, n := range peers {
		if n.Name == h.m.config.Name {
			h.m.seenAt(address(n), n.State)
			continue
		}
		if n.State != memberlist.StateAlive && n.State != memberlist.StateSuspect {
			continue
		}
		if r := h.m.judge(n); r != nil {
			return r
		}
	}
	return nil
}

// NotifyConflict hears of one name at two addresses. Node lock held.
func (h hooks) NotifyConflict(existing, other *memberlist.Node) {
	h.m.conflict(existing.Name, address(existing), address(other))
}

// AckPayload adds nothing to the answers to probes.
func (h hooks) AckPayload() []byte { return nil }

// NotifyPingComplete hears of a probe that was answered.
func (h hooks) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	h.m.doubt(n.Name, false)
}

func address(n *memberlist.Node) string {
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}
