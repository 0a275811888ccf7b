package router

import "kvca/state"

// loadOf is the load of slot s in bytes of CBR over its speed, as known here.
func (q *question) loadOf(s state.Slot, bypass int64, slowness float64) float64 {
	load := q.router.loads.Load(s)
	load.Active += bypass
	return load.Bytes(q.router.cfg.ActiveBytes) * slowness
}

// loadRange is the least and the greatest load among the eligible.
func (q *question) loadRange() (least, most float64) {
	for i, b := range q.eligible {
		load := q.loadOf(b.Slot, b.Bypass(), b.slowness())
		if i == 0 || load < least {
			least = load
		}
		most = max(most, load)
	}
	return least, most
}
