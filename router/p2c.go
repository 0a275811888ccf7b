package router

// twoChoices takes two backends at random and of these the one with fewer active
// requests (Mitzenmacher, The Power of Two Choices, 2001).
type twoChoices struct{}

func (twoChoices) looks() bool { return false }

func (twoChoices) order(q *question) {
	q.order.ByRequests = true
	n := uint64(len(q.eligible))
	first := q.router.cfg.Rand() % n
	q.offer(int(first), 0)
	if n > 1 {
		q.offer(int((first+1+q.router.cfg.Rand()%(n-1))%n), 0)
	}
}
