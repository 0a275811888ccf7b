package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Bounds of a shutdown beyond what the operator sets: how long handlers have to
// return once their connections are cut, peers to be told, and scrapers to finish.
const (
	handlerGrace = 5 * time.Second
	adminGrace   = time.Second
	leaveGrace   = 2 * time.Second
)

// drain takes the node out of service: it says so, gives load balancers time to
// notice, lets requests end, and cuts what has not ended in time. Then nothing is
// held here any more, and it leaves its cluster. The admin API answers until that is
// over.
func (n *node) drain(failed <-chan error) {
	n.draining.Store(true)
	s := n.live.Load()
	n.log.Info("draining", "delay", s.drainDelay, "timeout", s.drainTimeout, "in_flight", n.proxy.InFlight())
	if s.drainDelay > 0 {
		delay := time.NewTimer(s.drainDelay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-failed: // nobody is served any more
		}
	}
	n.drainClients(s.drainTimeout)
	if n.peers != nil {
		n.peers.leave()
	}
	_ = shutdown(n.front.of("admin").server, adminGrace) // Close cuts what is left
	n.log.Info("drained")
}

// drainClients lets the requests on all listeners of clients end, at the same time,
// and cuts what has not ended in time. Server.Shutdown knows nothing of WebSockets,
// the visitors do.
func (n *node) drainClients(limit time.Duration) {
	end := time.Now().Add(limit)
	var ending sync.WaitGroup
	for _, l := range n.front.listeners {
		if l.flag == "admin" {
			continue
		}
		ending.Go(func() {
			err := shutdown(l.server, limit)
			if err == nil && l.visitors.wait(time.Until(end)) {
				return
			}
			n.log.Warn("requests cut", "listener", l.flag, "in_flight", n.proxy.InFlight(), "timeout", limit)
			l.server.Close()
			n.proxy.CutSockets()
			l.visitors.wait(handlerGrace)
		})
	}
	ending.Wait()
}

func shutdown(s *http.Server, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.Shutdown(ctx)
}

// visitors counts requests in their handlers. net/http waits for connections,
// not for handlers: after a cut they are still on their way out, and what they
// use must not go before them.
type visitors struct {
	mu     sync.Mutex
	inside int
	empty  chan struct{} // closed when the last leaves; nil while nobody waits
}

// count makes a handler that counts its requests.
func (v *visitors) count(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		v.inside++
		v.mu.Unlock()
		defer v.leave()
		h.ServeHTTP(w, r)
	})
}

func (v *visitors) leave() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.inside--; v.inside == 0 && v.empty != nil {
		close(v.empty)
		v.empty = nil
	}
}

// wait waits until nobody is inside, at most for limit, and reports whether that is
// so.
func (v *visitors) wait(limit time.Duration) bool {
	v.mu.Lock()
	if v.inside == 0 {
		v.mu.Unlock()
		return true
	}
	if v.empty == nil {
		v.empty = make(chan struct{})
	}
	empty := v.empty
	v.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-empty:
		return true
	case <-timer.C:
		return false
	}
}
