package cluster

import (
	"time"

	"kvca/cluster/link"
	"kvca/cluster/wire"
	"kvca/state/quota"
)

// How owners hear what a node has: what it does not need goes back with the next beat,
// slots at once where they are scarce, and all that it holds is told with the held
// sets of reservations: at every link, after every change of members, and every two
// seconds. A claim that is not told for six is forgotten.
//
// quotaPart is the size at which a frame of reports is sent.
const quotaPart = 12 << 10

// quotaMail gathers reports for owners.
type quotaMail struct {
	sum    uint64
	bodies map[*peer][]byte
}

func (m *quotaMail) add(k *quotaKey, r *quota.Report) {
	p := k.owner
	b := m.bodies[p]
	if b == nil {
		b = wire.AppendQuotaHeld(nil, m.sum, false)
	}
	if b = wire.AppendQuotaReport(b, k.name, r); len(b) >= quotaPart {
		p.send(link.Urgent, wire.QuotaHeld, b)
		b = nil
	}
	m.bodies[p] = b
}

func (m *quotaMail) send() {
	for p, b := range m.bodies {
		if b != nil {
			p.send(link.Urgent, wire.QuotaHeld, b)
		}
	}
}

// beat gives back what is not needed, and looks after some of the keys.
func (q *quotas) beat(n uint64, now time.Duration) {
	if q.count.Load() == 0 {
		return
	}
	v := q.c.view.Load()
	mail := quotaMail{sum: v.sum, bodies: make(map[*peer][]byte)}
	for i := range q.shards {
		s := &q.shards[i]
		s.mu.Lock()
		keep := s.busy[:0]
		for _, k := range s.busy {
			q.place(k, v, now)
			q.giveBack(k, &mail, now)
			if k.busy = k.hold.InHand(); k.busy {
				keep = append(keep, k)
			}
		}
		clear(s.busy[len(keep):])
		s.busy = keep
		s.mu.Unlock()
	}
	mail.send()
	q.sweep(&q.shards[n%quotaShards], v, now)
}

func (q *quotas) giveBack(k *quotaKey, mail *quotaMail, now time.Duration) {
	if !k.own && (k.owner == nil || k.owner.connected() == nil) {
		return
	}
	r, ok := k.hold.Return(now)
	switch {
	case !ok:
	case k.own:
		k.books.Told(now, quota.Self, &r)
	default:
		mail.add(k, &r)
	}
}

// tellNow gives back at once what is not needed. The caller holds s.mu.
func (q *quotas) tellNow(s *quotaShard, k *quotaKey, now time.Duration) {
	if k.owner == nil {
		return
	}
	if r, ok := k.hold.Return(now); ok {
		s.frame = wire.AppendQuotaHeld(s.frame[:0], q.c.view.Load().sum, false)
		s.frame = wire.AppendQuotaReport(s.frame, k.name, &r)
		k.owner.send(link.Urgent, wire.QuotaHeld, s.frame)
	}
}

// sweep follows changes of members for keys that nobody uses, forgets stale claims,
// and the keys that are not in use.
func (q *quotas) sweep(s *quotaShard, v *view, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.keys {
		q.place(k, v, now)
		if k.books != nil {
			k.books.Tend(now)
		}
		if now-k.used >= quotaIdle && k.idle(now) {
			delete(s.keys, name)
			q.count.Add(-1)
		}
	}
}

// idle is whether nothing is lost with the key.
func (k *quotaKey) idle(now time.Duration) bool {
	return !k.busy && len(k.waiting) == 0 && k.hold.Idle() && (k.books == nil || k.books.Idle(now))
}

// tellHeld tells a peer all that this node holds of its keys. A node that has never
// had a key tells so once a view.
func (q *quotas) tellHeld(p *peer, now time.Duration) {
	if !p.quotaDue.Swap(false) && q.count.Load() == 0 {
		return
	}
	v := q.c.view.Load()
	mail := quotaMail{sum: v.sum, bodies: make(map[*peer][]byte)}
	q.each(func(_ *quotaShard, k *quotaKey) {
		q.place(k, v, now)
		if k.owner == p && k.hold.Holds() {
			r := k.hold.Report(quota.Amount{})
			mail.add(k, &r)
		}
	})
	mail.send()
	p.send(link.Urgent, wire.QuotaHeld, wire.AppendQuotaHeld(nil, v.sum, true))
}
