package publish

import (
	"context"
	"encoding/binary"
	"strings"
	"sync"

	"kvca/proxy/engine/zmtp"
)

const maxTopics = 64 // prefixes of one subscriber; more are not taken

// subscriber is one connection of the PUB.
type subscriber struct {
	wake chan struct{} // holds one token where the queue has grown

	mu     sync.Mutex
	topics map[string]int // prefix: how often it was subscribed to
	queue  []batch
}

// serveSubscriber sends what is published, and reads subscriptions meanwhile, until
// the connection or life ends.
func (p *Publisher) serveSubscriber(life context.Context, conn *zmtp.Conn) {
	s := &subscriber{wake: make(chan struct{}, 1), topics: map[string]int{}}
	if !p.enlist(life, s) {
		return
	}
	ctx, cancel := context.WithCancel(life)
	var writer sync.WaitGroup
	writer.Go(func() {
		s.write(ctx, conn, p.c.Topic)
		conn.Close()
	})
	for {
		frames, err := conn.Receive()
		if err != nil {
			break
		}
		s.subscribe(frames)
	}
	p.mu.Lock()
	delete(p.subscribers, s)
	p.mu.Unlock()
	cancel()
	conn.Close()
	writer.Wait()
}

// enlist adds a subscriber, unless life has ended since it connected.
func (p *Publisher) enlist(life context.Context, s *subscriber) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if life.Err() != nil {
		return false
	}
	p.subscribers[s] = struct{}{}
	return true
}

// subscribe does what a subscription asks for; anything else is ignored.
func (s *subscriber) subscribe(frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return
	}
	topic := string(frames[0][1:])
	s.mu.Lock()
	defer s.mu.Unlock()
	switch n := s.topics[topic]; {
	case frames[0][0] == 1 && (n > 0 || len(s.topics) < maxTopics):
		s.topics[topic] = n + 1
	case frames[0][0] == 0 && n == 1:
		delete(s.topics, topic)
	case frames[0][0] == 0 && n > 1:
		s.topics[topic] = n - 1
	}
}

func (s *subscriber) wants(topic string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.matches(topic)
}

// matches says whether a prefix of topic was subscribed to. mu is held.
func (s *subscriber) matches(topic string) bool {
	for prefix := range s.topics {
		if strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}

// offer queues a batch where its topic matches; false: it did not fit.
func (s *subscriber) offer(b batch, topic string, bound int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.matches(topic) {
		return true
	}
	if len(s.queue) >= bound {
		return false
	}
	s.queue = append(s.queue, b)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// write sends the queue until ctx ends or a send fails.
func (s *subscriber) write(ctx context.Context, conn *zmtp.Conn, topic string) {
	for {
		b, ok := s.pop()
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if conn.Send([]byte(topic), binary.BigEndian.AppendUint64(nil, b.seq), b.payload) != nil {
			return
		}
	}
}

func (s *subscriber) pop() (batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.queue = nil
		return batch{}, false
	}
	b := s.queue[0]
	s.queue[0] = batch{}
	s.queue = s.queue[1:]
	return b, true
}
