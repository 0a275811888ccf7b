package router

// leastRequest takes the backend with the fewest active requests.
type leastRequest struct{}

func (leastRequest) looks() bool { return false }

func (leastRequest) order(q *question) {
	q.order.ByRequests = true
	q.offerAll()
}
