package engine

import "sync"

// Bounds of the responses kept for follow-ups. The oldest go first.
const (
	maxStored      = 4096
	maxStoredBytes = 64 << 20
)

// stored is a response with the conversation up to its end. Conversations share their earlier turns, but each is charged in full.
type stored struct {
	object responseObject
	turns  []message
}

func (r stored) bytes() int {
	n := 0
	for _, m := range r.turns {
		n += len(m.Content) + 64
		for _, k := range m.Calls {
			n += len(k.Name) + len(k.Arguments)
		}
	}
	return n
}

type responseStore struct {
	mu    sync.Mutex
	byID  map[string]stored
	order []string // oldest first
	bytes int
}

func newResponseStore() *responseStore { return &responseStore{byID: make(map[string]stored)} }

func (st *responseStore) get(id string) (stored, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r, ok := st.byID[id]
	return r, ok
}

func (st *responseStore) put(id string, r stored) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.byID[id] = r
	st.order = append(st.order, id)
	st.bytes += r.bytes()
	for len(st.order) > 1 && (len(st.order) > maxStored || st.bytes > maxStoredBytes) {
		st.bytes -= st.byID[st.order[0]].bytes()
		delete(st.byID, st.order[0])
		st.order = st.order[1:]
	}
}
