package router

// random takes any backend.
type random struct{}

func (random) looks() bool { return false }

func (random) order(q *question) {
	q.offer(int(q.router.cfg.Rand()%uint64(len(q.eligible))), 0)
}
