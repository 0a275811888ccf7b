package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"kvca/proxy/tenant"
	"kvca/router"
)

// pinned stands between a model and the one backend of it that a pool is.
const pinned = "\n"

// Room is how many requests more a pool takes that requests at other nodes wait for;
// false where there is no such pool here, or nobody waits, or it has other backends than
// those that Print of the pool says, unless that is 0.
func (p *Proxy) Room(pool string, backends uint64) (free int, known bool) {
	cfg := p.config()
	model, id, pin := strings.Cut(pool, pinned)
	members, ok := p.pool.Model(model)
	if cfg.MaxActive == 0 || !ok || backends != 0 && backends != p.pool.Print(model) {
		return 0, false
	}
	if pin {
		members = slices.DeleteFunc(slices.Clone(members), func(b *router.Backend) bool { return b.ID != id })
	}
	return p.router.Room(members, cfg.MaxActive), len(members) > 0
}

// turn waits until the pool has room for the request. In place of the engines'
// own queues, which know neither tenants nor deadlines, it waits here, and is sent
// to whoever is best by then.
func (x *exchange) turn(ctx context.Context) error {
	if x.cfg.MaxActive == 0 || x.cfg.Queue == nil || !x.endpoint.computes && !x.endpoint.socket {
		return nil // what computes nothing, such as the cancelling of a response, takes nobody's turn
	}
	r, members, most := x.p.router, x.members, x.cfg.MaxActive
	w := tenant.Waiter{Class: defaultClass, Bytes: x.upload.booked}
	if t := x.tenant; t != nil {
		w.Tenant, w.Class, w.Weight = t.Name, t.Class, t.Weight
	}
	x.pool, w.Backends = x.want.Model, x.p.pool.Print(x.want.Model)
	if x.want.Pin != nil { // it waits for one backend, and must not stand before those who don't
		x.pool += pinned + x.want.Pin.ID
	}
	var err error
	x.queued, err = x.cfg.Queue.Enter(ctx, x.pool, w, func() int { return r.Room(members, most) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tenant.ErrQueueFull):
		return overloaded("queue_full", "All backends of this model are busy, and too many requests wait for them already. Try again later.")
	case errors.Is(err, tenant.ErrWaited):
		return overloaded("queue_timeout", "All backends of this model were busy for as long as a request may wait. Try again later.")
	}
	return errClientGone
}

// defaultClass is that of clients without a tenant.
const defaultClass = 5

func overloaded(code, message string) *apiError {
	return &apiError{status: http.StatusTooManyRequests, code: code, message: message, retryAfter: 2}
}

// booked tells the queue that a request which had to wait counts now, or never will.
func (x *exchange) booked() {
	if x.queued > 0 {
		x.cfg.Queue.Booked(x.pool)
	}
}

// freed tells the queue that the request is over.
func (x *exchange) freed() {
	if x.cfg.MaxActive > 0 && x.cfg.Queue != nil && x.ticket != nil {
		x.cfg.Queue.Freed(x.pool)
	}
}

// waiting is how many requests wait for their turn.
func (p *Proxy) waiting() int64 {
	if q := p.config().Queue; q != nil {
		return q.WaitingAll()
	}
	return 0
}
